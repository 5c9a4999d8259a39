// Custom kernels of TPUs: one run of one, what it does and waits for, another version beside it; and
// which units each kept busy, by hardware counters.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { Api } from "../../api/client";
import type { Cell, Report, Series, Table } from "../../api/report";
import type { Runs } from "../../api/types";
import { HeatMap } from "../../charts/heat";
import { plural } from "../../model/format";
import { comparison, kernelNames, kernelSeries } from "../../model/hardware";
import { causesOf, inSentence, kernelsOf, rangeOf, runsOf, shownKernel, shownRun, untold, versus, type Cause, type Kernel } from "../../model/kernels";
import { runTitle } from "../../model/runname";
import { elsewhere, formatRange, rangeArguments, timelineHref, type ToolUrl } from "../../model/toolurl";
import { asNumber, exact, share, show } from "../../model/units";
import { Delta } from "../../widgets/delta";
import { Copy } from "../../widgets/copy";
import { Icon } from "../../widgets/icon";
import { ProblemPanel } from "../../widgets/problem";
import { Loading } from "../../widgets/shell";
import { DataTable } from "../../widgets/table";
import { useReport } from "./load";
import { TablePart, type PartProps } from "./parts";
import { Choice } from "./special";
import { current, set, setArg, tableState } from "./state";

/** For the server: the op that is chosen, if it is a kernel. */
export function kernelArguments(s: ToolUrl): Record<string, string> {
  return s.op ? { prefer: s.op, ...(s.program ? { program_id: s.program } : {}) } : {};
}

/** Tables that have a place of their own, or nothing to say. */
export const kernelTables = (r: Report): Table[] => r.tables.filter((t) => t.id !== "stalls" && t.id !== "stack" && (t.id !== "kernels" || t.rows.length > 0));

/** What a span of a chart over the run chooses: the part of the session that all pages are about. */
export function kernelSpan(x: Series, { report }: PartProps): ((a: Cell | undefined, b: Cell | undefined) => void) | undefined {
  if (!x.id.endsWith("_bins")) return undefined;
  return (a, b) => {
    const range = rangeOf(report, x.points, a, b);
    if (range) set({ steps: "", range: formatRange(range), args: { ...current().args, occurrence: "", on: "" } });
  };
}

const label = (k: Kernel, all: readonly Kernel[]): string =>
  `${k.op}${all.some((x) => x !== k && x.op === k.op) && k.program ? ` of program ${k.program}` : ""}, ${show(k.time, "ps")}${k.recorded > 0 ? "" : ", inside not told"}`;

const idOf = (k: Kernel): string => `${k.op} ${k.program}`;

/** Which kernel, which of its runs. */
export function KernelControls({ report, s, root }: PartProps) {
  const kernels = kernelsOf(report);
  const runs = runsOf(report);
  const shown = shownRun(report);
  const now = shownKernel(report);
  if (!now) return null;
  const choose = (id: string): void => {
    const k = kernels.find((x) => idOf(x) === id);
    if (k) set({ op: k.op, program: k.program, args: { ...s.args, occurrence: "", on: "" } });
  };
  const pick = (n: string): void => {
    const run = runs.find((x) => x.number === n);
    set({ op: now.op, program: now.program, args: { ...s.args, occurrence: n, on: run && report.hosts.length > 1 ? run.host : "" } });
  };
  return (
    <div class="controls">
      <label class="choice">Kernel
        <select value={idOf(now)} onChange={(e) => choose(e.currentTarget.value)}>
          {kernels.map((k) => <option key={idOf(k)} value={idOf(k)}>{label(k, kernels)}</option>)}
        </select>
      </label>
      {runs.length > 1 && (
        <label class="choice">Run
          <select value={shown?.number ?? ""} onChange={(e) => pick(e.currentTarget.value)}>
            {!shown && <option value="">beyond those listed</option>}
            {runs.map((x) => <option key={x.number} value={x.number}>{`${x.number}: ${show(x.time, "ps")}${x.inside ? `, ${x.inside}` : ""}`}</option>)}
          </select>
        </label>
      )}
      {shown && (
        <a class="button" href={timelineHref(root, s, { op: now.op, program: now.program, host: shown.host, begin: asBegin(shown.begin), duration: asBegin(shown.time), window: true })}>
          <Icon name="timeline" /> This run in the timeline
        </a>
      )}
    </div>
  );
}

const asBegin = (v: Cell): number | bigint | null => (typeof v === "number" || typeof v === "bigint" ? v : null);

/** What the run does: each moment has one cause. */
export function CausesPart({ report, s, root }: PartProps) {
  const causes = useMemo(() => causesOf(report), [report]);
  const told = causes.filter((c) => c.time !== null && asNumber(c.time) > 0);
  const nothing = causes.filter((c) => c.time !== null && asNumber(c.time) === 0);
  const why = untold(causes);
  const none = report.metrics.find((m) => m.id === "kernel_name")?.reason;
  if (none) {
    const gpu = none.includes("kernel_stats");
    return (
      <div class="empty">
        <h2>No custom kernels</h2>
        <p>{none.charAt(0).toUpperCase() + none.slice(1)}.{gpu && <> <a href={`${root}kernel_stats${elsewhere(s)}`}>GPU kernels</a></>}</p>
      </div>
    );
  }
  if (causes.length === 0) return null;
  const all = told.every((c) => c.id === "unrecorded");
  return (
    <section class="panel" aria-label="What the run does">
      <div class="panel-head">
        <h2>What the run does</h2>
        <output class="table-count">each moment has one cause, the first that fits from the top down</output>
      </div>
      {!all && (
        <table class="plain causes">
          <thead><tr><th scope="col">What it does</th><th scope="col" class="number">Time</th><th scope="col">Of what is recorded</th><th scope="col" class="number">Of the run</th><th scope="col">Told by</th></tr></thead>
          <tbody>{told.map((c) => <CauseRow key={c.id} c={c} />)}</tbody>
        </table>
      )}
      {all && <p class="none">The profile does not say what this run did inside.</p>}
      {nothing.length > 0 && <p class="none">None of it: {nothing.map((c, i) => <span key={c.id} title={c.definition}>{i > 0 && "; "}{inSentence(c.label)}</span>)}.</p>}
      {!all && why.map((w) => <p key={w.reason} class="none">n/a: {w.labels.map(inSentence).join("; ")}. {w.reason.charAt(0).toUpperCase() + w.reason.slice(1)}.</p>)}
    </section>
  );
}

function CauseRow({ c }: { c: Cause }) {
  return (
    <tr class={c.id === "unrecorded" ? "rest" : c.stall ? "stall" : "works"}>
      <th scope="row" title={c.definition}>{c.label}{c.stall && <span class="unseen"> (a stall)</span>}</th>
      <td class="number" title={exact(c.time, "ps")}>{show(c.time, "ps")}</td>
      <td>{!Number.isNaN(c.recorded) && <span class="cause-share"><span class="cause-bar"><i style={{ width: `${Math.max(0.4, c.recorded * 100)}%` }} /></span>{share(c.recorded)}</span>}</td>
      <td class="number">{share(c.share)}</td>
      <td>{c.from}</td>
    </tr>
  );
}

/** The line that calls it, and who calls that. */
export function SourcePart({ report }: PartProps) {
  const m = report.metrics.find((x) => x.id === "kernel_source");
  const stack = report.tables.find((t) => t.id === "stack");
  if (!m) return null;
  return (
    <section class="panel" aria-label="Where it comes from">
      <div class="panel-head"><h2>Where it comes from</h2>{m.value !== null && <output class="table-count">the line that calls the kernel, and those that call that</output>}</div>
      {m.value === null
        ? <p class="none">n/a: {m.reason}.</p>
        : (
          <>
            <p class="row source-line"><code>{String(m.value)}</code> <Copy text={() => String(m.value)} title="Copy the line" /></p>
            {stack && <ol class="stack">{stack.rows.map((r, i) => <li key={i}><code>{String(r[1])}</code>{r[2] && <> in <code>{String(r[2])}</code></>}</li>)}</ol>}
          </>
        )}
    </section>
  );
}

/** Figures that stand in a part of their own. */
export const kernelElsewhere = (id: string): boolean => id === "kernel_source" || id === "kernel_name" || id === "kernel_program";

/* --- another version beside it --- */

/** Which run the other kernel is of: the one that is named, else the base of all pages, else this one. */
const otherRun = (s: ToolUrl): string => s.args["versus_run"] || s.base || s.run;

/** Of the kernel of that name: the shown one's where that has it, else the first that has. */
function programOf(r: Report, name: string): string {
  const named = kernelsOf(r).filter((k) => k.op === name);
  return (named.find((k) => k.program === shownKernel(r)?.program) ?? named[0])?.program ?? "";
}

export function VersusPart(p: PartProps) {
  const { report, s, root } = p;
  const api = useMemo(() => new Api(root), [root]);
  const runs = useSignal<string[]>([]);
  const run = otherRun(s);
  const name = s.args["versus"] ?? "";
  const mine = String(report.metrics.find((m) => m.id === "kernel_name")?.value ?? "");
  const abroad = run !== s.run;
  const on = mine !== "" && (abroad || name !== "");
  const program = abroad ? "" : programOf(report, name);
  // Kernels of another run have other numbers behind their names, and programs have other ids.
  const other = useReport(api, on ? { run, tool: "kernel_utilization", ...(name ? { kernel: name } : { prefer: mine }), ...(program ? { program_id: program } : {}), ...(abroad ? {} : { host: s.hosts, ...rangeArguments(s) }) } : null);
  const list = useReport(api, on && abroad ? { run, tool: "kernel_utilization", table: "calls" } : null);
  useEffect(() => {
    const abort = new AbortController();
    api.json<Runs>("runs", { limit: 200 }, abort.signal).then((got) => (runs.value = got.runs.filter((r) => r.state === "ready").map((r) => r.run)), () => undefined); // a name can be typed all the same
    return () => abort.abort();
  }, [api]);
  if (mine === "") return null;
  const theirs = abroad ? kernelsOf(list.report.value ?? other.report.value ?? report) : kernelsOf(report).filter((k) => k.op !== mine);
  const shown = String(other.report.value?.metrics.find((m) => m.id === "kernel_name")?.value ?? "");
  const unlike = abroad && name === "" && other.report.value?.notes.some((n) => n.code === "kernel_other");
  return (
    <section class="panel" aria-label="Two versions">
      <div class="panel-head">
        <h2>Two versions</h2>
        <output class="table-count">{mine}{on && shown ? ` and ${shown} of ${abroad ? runTitle(run) : "this run"}` : " beside another kernel"}</output>
      </div>
      <form class="controls" onSubmit={(e) => e.preventDefault()}>
        <label class="choice">Other run
          <datalist id="kernel-runs">{runs.value.map((r) => <option key={r} value={r} />)}</datalist>
          <input
            type="text" list="kernel-runs" spellcheck={false} autocomplete="off" value={s.args["versus_run"] ?? ""} placeholder={s.base ? runTitle(s.base) : "this run"}
            onChange={(e) => set({ args: { ...s.args, versus_run: e.currentTarget.value.trim(), versus: "" } })}
          />
        </label>
        {(theirs.length > 0 || name !== "") && (
          <label class="choice">Kernel
            <select value={name} onChange={(e) => setArg("versus", e.currentTarget.value)}>
              <option value="">{abroad ? "the one of that name" : "choose one"}</option>
              {name !== "" && !theirs.some((k) => k.op === name) && <option value={name}>{name}</option>}
              {[...new Set(theirs.map((k) => k.op))].map((op) => <option key={op} value={op}>{op}</option>)}
            </select>
          </label>
        )}
      </form>
      {!on
        ? <p class="none">Choose another kernel of this run, or a run that has another version of this one.</p>
        : other.problem.value
          ? <ProblemPanel small problem={other.problem.value} retry={other.retry} />
          : unlike
            ? <p class="none">That run has no kernel called so: choose one.</p>
            : other.report.value && !other.busy.value
              ? shown ? <Both a={report} b={other.report.value} p={p} /> : <p class="none">That run has no custom kernels.</p>
              : <Loading what="Reading the other one…" />}
    </section>
  );
}

function Both({ a, b, p }: { a: Report; b: Report; p: PartProps }) {
  const v = useMemo(() => versus(a, b), [a, b]);
  return (
    <div class="counter-part">
      <p class={`verdict ${v.tone}`}><Icon name="compare" /> <span>{v.said}</span></p>
      {v.warning && <ul class="notes"><li class="warning"><Icon name="warn" /> <span>{v.warning}</span></li></ul>}
      <Sides t={v.times} p={p} deltas={["difference", "share_difference"]} worse />
      {v.units.rows.length > 0 && <Sides t={v.units} p={p} deltas={["difference", "count_difference"]} worse={null} />}
    </div>
  );
}

function Sides({ t, p, deltas, worse }: { t: Table; p: PartProps; deltas: readonly string[]; worse: boolean | null }) {
  const most = t.columns.map((_, i) => t.rows.reduce((m, r) => Math.max(m, Math.abs(asNumber(r[i])) || 0), 0));
  const state = tableState(p.s, t.id, false, null);
  const chosen = useSignal<readonly Cell[] | null>(null);
  return (
    <DataTable
      table={t} q={state.q} onFilter={state.setQ} sort={state.sort} onSort={state.setSort}
      changed={state.changed} onColumns={state.setChanged} where={window.location.href}
      isChosen={(row) => row === chosen.value} onChoose={(row) => (chosen.value = row)} whyNull={() => "Only one of them has it, or it is not told"}
      cell={(row, i) => (deltas.includes(t.columns[i]!.id) && row[i] !== null ? <Delta v={row[i]} unit={t.columns[i]!.unit} most={most[i]!} worse={worse !== null && row[0] !== "Computes" ? worse : null} /> : undefined)}
    />
  );
}

/* --- by counters --- */

export function CounterKernels(p: PartProps) {
  const { report, s } = p;
  const t = report.tables.find((x) => x.id === "kernels");
  const series = useMemo(() => (t ? kernelSeries(t) : null), [t]);
  if (!t || !series || t.rows.length === 0) return null;
  const names = kernelNames(t);
  const options = names.map((n, i) => [String(i), n] as const);
  const pick = (name: string, usual: number): number => {
    const i = Number(s.args[name] ?? usual);
    return Number.isInteger(i) && i >= 0 && i < names.length ? i : usual;
  };
  const counted = names.map((_, i) => i).filter((i) => series.points[i]!.some((v, k) => k > 0 && v !== null));
  const [one, other] = [pick("one", counted[0] ?? 0), pick("other", counted[1] ?? Math.min(1, names.length - 1))];
  return (
    <>
      <section class="panel" aria-label={series.title}>
        <div class="panel-head">
          <h2>{series.title}</h2>
          <output class="table-count">{plural(series.names.length, "unit")} × {plural(series.points.length, "kernel")}</output>
        </div>
        <HeatMap s={series} />
      </section>
      {names.length > 1 && (
        <div class="counter-part">
          <div class="controls">
            <Choice name="one" label="Compare" value={String(one)} options={options} />
            <Choice name="other" label="with" value={String(other)} options={options} />
          </div>
          <TablePart {...p} t={comparison(t, one, other)} first={false} />
        </div>
      )}
    </>
  );
}
