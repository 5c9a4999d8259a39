// One run and its hosts.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { Api, asProblem, isAbort, type Problem } from "../../api/client";
import type { Host, Run } from "../../api/types";
import { ago, bytes, count, date, plural } from "../../model/format";
import { here } from "../../model/location";
import { runTitle } from "../../model/runname";
import { tools } from "../../model/tools";
import { parseTool, toolHref } from "../../model/toolurl";
import { capturesHref } from "../../shell/rail";
import { toolsOf } from "../../shell/runtools";
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
    document.title = `${runTitle(run)} · xprofd`;
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
      <Bar crumbs={<><a href={root}>Runs</a> <Icon name="right" /> <b title={runTitle(run)}>{runTitle(run)}</b></>}>
        <a class="button" href={capturesHref(root)} title="Profile the same hosts again, now"><Icon name="camera" /> <span class="word">Capture</span></a>
      </Bar>
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
        <h1>{runTitle(a.run)}</h1>
        <p title={when.iso}>captured {when.text} <span class="ago">{ago(a.captured_ms, Date.now())}</span> · {plural(a.hosts.length, "host")}{a.location && <> · <code>{a.location}</code></>}</p>
      </div>
      {a.hosts.length === 0
        ? <div class="empty"><h2>No profile in this run</h2>{a.note && <p>{a.note}</p>}<p>{a.location ? <>Read: <code>{a.location}</code>. Expected there: </> : "Expected in it: "}<code>&lt;host&gt;.xplane.pb</code>.</p></div>
        : (
          <div class="sheet">
            <table class="runs">
              <thead><tr><th scope="col">Host</th><th scope="col" class="wide">Written</th><th scope="col" class="number">Size</th><th scope="col">State</th></tr></thead>
              <tbody>{a.hosts.map((h) => <HostLine key={h.host} run={a.run} h={h} root={root} />)}</tbody>
            </table>
          </div>
        )}
      {a.hosts.length > 0 && <Pages a={a} root={root} />}
    </>
  );
}

/** What can be asked about this run; those without data say why. */
function Pages({ a, root }: { a: Run; root: string }) {
  const states = toolsOf(root, a.run).value;
  const reasonOf = (id: string): string => {
    const state = states?.get(id);
    return state && !state.available ? state.reason ?? "no data" : "";
  };
  const reasons = [...new Set(tools.map((t) => reasonOf(t.id)).filter(Boolean))];
  const s = parseTool(`?run=${encodeURIComponent(a.run)}`);
  return (
    <section aria-label="Pages of this run">
      <h2 class="pages-title">What do you want to know?</h2>
      <div class="pages">
        {tools.filter((t) => !reasonOf(t.id)).map((t) => (
          <a key={t.id} class="page-card" href={toolHref(root, t.id, s)}>
            <Icon name={t.icon} />
            <span><b>{t.label}</b><br />{t.question}</span>
          </a>
        ))}
      </div>
      {reasons.length > 0 && (
        <dl class="unknown">
          {reasons.map((reason) => (
            <div key={reason}>
              <dt>{tools.filter((t) => reasonOf(t.id) === reason).map((t) => t.label).join(", ")}</dt>
              <dd>{reason}</dd>
            </div>
          ))}
        </dl>
      )}
    </section>
  );
}

const states: Record<Host["state"], string> = {
  ready: "ready", unreadable: "unreadable", unsupported: "unsupported", loading: "loading", resident: "in memory",
};

function HostLine({ run, h, root }: { run: string; h: Host; root: string }) {
  const when = date(h.modified_ms);
  const href = `${root}trace?run=${encodeURIComponent(run)}&host=${encodeURIComponent(h.host)}`;
  return (
    <tr>
      <th scope="row">{h.state === "unsupported" ? h.host : <a href={href}>{h.host}</a>}</th>
      <td class="wide" title={when.iso}>{when.text}</td>
      <td class="number" title={`${count(h.bytes)} bytes`}>{bytes(h.bytes)}{h.compressed && <span class="ago"> gzip</span>}</td>
      <td><span class={`pill ${h.state}`}>{states[h.state] ?? h.state}</span> {h.note && <span class="note">{h.note}</span>}</td>
    </tr>
  );
}
