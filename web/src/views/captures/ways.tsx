// How profiles come here without this page.
import { OpenFile } from "../../shell/upload";
import { Copy } from "../../widgets/copy";

export function Snippet({ text, what }: { text: string; what: string }) {
  return (
    <div class="snippet">
      <pre tabIndex={0} aria-label={what}>{text}</pre>
      <Copy text={() => text} title={`Copy: ${what}`} />
    </div>
  );
}

const quoted = (s: string): string => `"${s.replace(/[\\"]/g, "\\$&")}"`;

export function Ways({ dir, root, demand }: { dir: string; root: string; demand: boolean }) {
  return (
    <>
      <section aria-labelledby="from-program">
        <h2 id="from-program">From the program</h2>
        <p>A few steps are enough. Write below <code>{dir}</code> (or whatever leads there from the machine that runs the program):</p>
        <Snippet what="capture in a JAX program" text={`import jax\n\njax.profiler.start_trace(${quoted(dir)})\n...  # three to ten steps\njax.profiler.stop_trace()`} />
        <p>Name the steps, so that times are told per step: <code>with jax.profiler.StepTraceAnnotation("train", step_num=i):</code></p>
      </section>
      {demand && (
        <section aria-labelledby="on-demand">
          <h2 id="on-demand">From a program that runs</h2>
          <p>If it has called <code>jax.profiler.start_server(9999)</code>, JAX's own collector asks it for two seconds:</p>
          <Snippet what="capture on demand" text={`python -m jax.collect_profile 9999 2000 --log_dir=${quoted(dir)} --no_perfetto_link`} />
        </section>
      )}
      <section aria-labelledby="from-file">
        <h2 id="from-file">From a file</h2>
        <p>Drop a <code>&lt;host&gt;.xplane.pb</code> or <code>.xplane.pb.gz</code> on any page, or choose it. It is kept for a while and not listed to others.</p>
        <p><OpenFile /></p>
      </section>
      <section aria-labelledby="then">
        <h2 id="then">Then</h2>
        <p>New runs appear in <a href={root}>the list</a> by themselves, within a few seconds. If one does not, the list says what was read, what was found there, and what is expected.</p>
      </section>
    </>
  );
}
