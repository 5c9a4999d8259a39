// One run and its hosts.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { apiUrl } from "../../api/base";
import { Api, asProblem, isAbort, type Problem } from "../../api/client";
import { watch } from "../../api/events";
import type { Host, Run, RunFacts } from "../../api/types";
import { ago, bytes, count, date, plural } from "../../model/format";
import { here } from "../../model/location";
import { runTitle } from "../../model/runname";
import { tools } from "../../model/tools";
import { parseTool, toolHref } from "../../model/toolurl";
import { capturesHref } from "../../shell/rail";
import { exact, show } from "../../model/units";
import { figureState, wantFigures } from "../../shell/figures";
import { toolsOf } from "../../shell/runtools";
import { Icon } from "../../widgets/icon";
import { ProblemPanel } from "../../widgets/problem";
import { Bar, Loading } from "../../widgets/shell";

const EVERY = 60_000; // ms between looks, where the server does not tell

export function RunPage() {
  const { root, search } = here.value;
  const run = new URLSearchParams(search).get("run") ?? "";
  const api = useMemo(() => new Api(root), [root]);
  const answer = useSignal<{ of: Api; run: string; got: Run } | null>(null);
  const problem = useSignal<Problem | null>(null);
  const turn = useSignal(0);

  useEffect(() => {
    document.title = `${runTitle(run)} · xprofd`;
    problem.value = null;
  }, [api, run]);
  // What is known of it is told once it is; the page stays meanwhile.
  useEffect(() => {
    const abort = new AbortController();
    api.json<Run>("run", { run }, abort.signal).then(
      (got) => {
        if (abort.signal.aborted) return; // the page is another run's
        answer.value = { of: api, run, got };
        problem.value = null;
      },
      (e: unknown) => isAbort(e) || abort.signal.aborted || (problem.value = asProblem(e)),
    );
    return () => abort.abort();
  }, [api, run, turn.value]);
  useEffect(() => {
    let version = "";
    const runs = (data: string): void => {
      if (version) turn.value++; // the first one says what is there already
      version = data;
    };
    return watch(api.url("events"), { runs }, () => undefined, EVERY);
  }, [api]);

  const shown = answer.value;
  const a = shown && shown.of === api && shown.run === run ? shown.got : null;
  return (
    <>
      <Bar crumbs={<><a href={root}>Runs</a> <Icon name="right" /> <b title={runTitle(run)}>{runTitle(run)}</b></>}>
        <a class="button" href={capturesHref(root)} title="Profile the same hosts again, now"><Icon name="camera" /> <span class="word">Capture</span></a>
      </Bar>
      <main class="page">
        {problem.value && <ProblemPanel problem={problem.value} retry={() => turn.value++} />}
        {!a && !problem.value && <Loading what="Reading the run…" />}
        {a && <RunOf a={a} api={api} root={root} again={() => turn.value++} />}
      </main>
    </>
  );
}

const FIGURES: { id: keyof RunFacts & string; label: string; unit: string; page: string }[] = [
  { id: "step_time_mean", label: "Step time", unit: "ps", page: "pod_viewer" },
  { id: "mxu_utilization", label: "FLOP utilization", unit: "fraction", page: "roofline_model" },
  { id: "peak_memory", label: "Peak memory", unit: "bytes", page: "memory_profile" },
  { id: "device_type", label: "Device", unit: "", page: "overview_page" },
  { id: "workload", label: "Program", unit: "", page: "hlo_stats" },
  { id: "run_kind", label: "Work", unit: "", page: "overview_page" },
];

/** What is known of the run at a glance, as the list has it. */
function Figures({ a, api, root, again }: { a: Run; api: Api; root: string; again: () => void }) {
  const f = a.facts;
  const { waiting, problem } = figureState(api, a.run);
  if (!f)
    return (
      <p class="row">
        {waiting
          ? <span class="row" role="status"><span class="spinner" /> Getting its figures</span>
          : <button type="button" class="button" onClick={() => wantFigures(api, [{ run: a.run, hosts: a.hosts.length }], again)}><Icon name="gauge" /> Get figures</button>}
        {problem && <span class="note">{problem}</span>}
      </p>
    );
  const findings = (["p0", "p1", "p2"] as const).filter((p) => f[`findings_${p}`]).map((p) => `${f[`findings_${p}`]} ${p.toUpperCase()}`).join(", ");
  const link = (page: string, text: string) => <a href={toolHref(root, page, parseTool(`?run=${encodeURIComponent(a.run)}`))}>{text}</a>;
  const item = (id: string, label: string, value: preact.ComponentChildren, about: string | undefined, title = "") => (
    <div key={id} data-metric={id}><dt>{label}</dt><dd><b {...(title ? { title } : {})}>{value}</b> {about && <span title={about}>{about}</span>}</dd></div>
  );
  const why = (id: string): string | undefined => f.why[id] ?? f.notes[id];
  return (
    <section class="environment" aria-label="Figures of the run">
      <h2>At a glance</h2>
      <dl>
        {FIGURES.map(({ id, label, unit, page }) => {
          const v = f[id] as string | number | null;
          return item(id, label, v === null ? "n/a" : link(page, show(v, unit)), why(id), v === null ? "" : exact(v, unit));
        })}
        {item("findings", "Findings", f.findings_p0 === null ? "n/a" : link("smart_suggestion", findings || "none"), why("findings_p0"))}
        {item("hosts", "Hosts", ofExpected(a.hosts.length, f.expected_hosts), why("expected_hosts"))}
        {item("devices", "Devices", f.devices === null ? "n/a" : ofExpected(f.devices, f.expected_devices), f.devices === null ? why("devices") : why("expected_devices"))}
        {item("dropped_events", "Dropped events", f.dropped_events === null ? "n/a" : f.dropped_events > 0 ? <span class="warned">{count(f.dropped_events)}</span> : "0", why("dropped_events"))}
        {item("capture_kind", "Capture", a.kind ?? "n/a", a.kind ? undefined : why("capture_kind"))}
      </dl>
    </section>
  );
}

function ofExpected(n: number, expected: number | null) {
  return expected !== null && expected > n ? <span class="warned">{count(n)} of {count(expected)}</span> : count(n);
}

function RunOf({ a, api, root, again }: { a: Run; api: Api; root: string; again: () => void }) {
  const when = date(a.captured_ms);
  return (
    <>
      <div class="page-head">
        <h1>{runTitle(a.run)}</h1>
        <p title={when.iso}>captured {when.text} <span class="ago">{ago(a.captured_ms, Date.now())}</span> · {plural(a.hosts.length, "host")}{a.location && <> · <code>{a.location}</code></>}</p>
      </div>
      {a.note && a.hosts.length > 0 && <p class="none" role="status"><Icon name="warn" /> {a.note}</p>}
      {a.hosts.length > 0 && <Figures a={a} api={api} root={root} again={again} />}
      {a.hosts.length === 0
        ? <div class="empty"><h2>No profile in this run</h2>{a.note && <p>{a.note}</p>}<p>{a.location ? <>Read: <code>{a.location}</code>. Expected there: </> : "Expected in it: "}<code>&lt;host&gt;.xplane.pb</code>.</p></div>
        : (
          <div class="sheet">
            <table class="runs">
              <thead><tr><th scope="col">Host</th><th scope="col" class="wide">Written</th><th scope="col" class="number">Size</th><th scope="col">State</th><th scope="col"><span class="unseen">File</span></th></tr></thead>
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
  ready: "ready", unreadable: "unreadable", loading: "loading", resident: "in memory",
};

function HostLine({ run, h, root }: { run: string; h: Host; root: string }) {
  const when = date(h.modified_ms);
  const href = `${root}trace?run=${encodeURIComponent(run)}&host=${encodeURIComponent(h.host)}`;
  return (
    <tr>
      <th scope="row"><a href={href}>{h.host}</a></th>
      <td class="wide" title={when.iso}>{when.text}</td>
      <td class="number" title={`${count(h.bytes)} bytes`}>{bytes(h.bytes)}{h.compressed && <span class="ago"> gzip</span>}</td>
      <td><span class={`pill ${h.state}`}>{states[h.state] ?? h.state}</span> {h.note && <span class="note">{h.note}</span>}</td>
      <td class="row-links">{h.bytes > 0 && <a href={apiUrl(root, "file", { run, host: h.host })} download title={`Download ${bytes(h.bytes)} as they lie there`} aria-label={`Download the file of ${h.host}`}><Icon name="download" /></a>}</td>
    </tr>
  );
}
