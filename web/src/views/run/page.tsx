// One run and its hosts.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { Api, asProblem, isAbort, type Problem } from "../../api/client";
import type { Host, Run } from "../../api/types";
import { ago, bytes, count, date, plural } from "../../model/format";
import { here } from "../../model/location";
import { Icon } from "../../widgets/icon";
import { ProblemPanel } from "../../widgets/problem";
import { Bar, Loading } from "../../widgets/shell";

export function RunPage() {
  const { root, search } = here.value;
  const run = new URLSearchParams(search).get("run") ?? "";
  const api = useMemo(() => new Api(root), [root]);
  const answer = useSignal<Run | null>(null);
  const problem = useSignal<Problem | null>(null);
  const turn = useSignal(0);

  useEffect(() => {
    document.title = `${run} · xprofd`;
    const abort = new AbortController();
    answer.value = null;
    problem.value = null;
    api.json<Run>("run", { run }, abort.signal).then(
      (got) => (answer.value = got),
      (e: unknown) => isAbort(e) || (problem.value = asProblem(e)),
    );
    return () => abort.abort();
  }, [api, run, turn.value]);

  const a = answer.value;
  return (
    <>
      <Bar crumbs={<><a href={root}>Runs</a> <Icon name="right" /> <b title={run}>{run}</b></>} />
      <main class="page">
        {problem.value && <ProblemPanel problem={problem.value} retry={() => turn.value++} />}
        {!a && !problem.value && <Loading what="Reading the run…" />}
        {a && <RunOf a={a} root={root} />}
      </main>
    </>
  );
}

function RunOf({ a, root }: { a: Run; root: string }) {
  const when = date(a.captured_ms);
  return (
    <>
      <div class="page-head">
        <h1>{a.run}</h1>
        <p title={when.iso}>captured {when.text} <span class="ago">{ago(a.captured_ms, Date.now())}</span> · {plural(a.hosts.length, "host")} · <code>{a.location}</code></p>
      </div>
      {a.hosts.length === 0
        ? <div class="empty"><h2>No profile in this run</h2><p>Read: <code>{a.location}</code>. Expected there: <code>&lt;host&gt;.xplane.pb</code>.</p></div>
        : (
          <div class="sheet">
            <table class="runs">
              <thead><tr><th scope="col">Host</th><th scope="col">Written</th><th scope="col" class="number">Size</th><th scope="col">State</th></tr></thead>
              <tbody>{a.hosts.map((h) => <HostLine key={h.host} run={a.run} h={h} root={root} />)}</tbody>
            </table>
          </div>
        )}
    </>
  );
}

const states: Record<Host["state"], string> = {
  ready: "ready", unsupported: "unsupported", loading: "loading", resident: "in memory",
};

function HostLine({ run, h, root }: { run: string; h: Host; root: string }) {
  const when = date(h.modified_ms);
  const href = `${root}trace?run=${encodeURIComponent(run)}&host=${encodeURIComponent(h.host)}`;
  return (
    <tr>
      <th scope="row">{h.state === "unsupported" ? h.host : <a href={href}>{h.host}</a>}</th>
      <td title={when.iso}>{when.text}</td>
      <td class="number" title={`${count(h.bytes)} bytes`}>{bytes(h.bytes)}{h.compressed && <span class="ago"> gzip</span>}</td>
      <td><span class={`pill ${h.state}`}>{states[h.state] ?? h.state}</span> {h.note && <span class="note">{h.note}</span>}</td>
    </tr>
  );
}
