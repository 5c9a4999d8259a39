// Two runs: what changed, and whether the ops explain it.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { Api } from "../../api/client";
import type { Cell, Metric, Report } from "../../api/report";
import type { Runs } from "../../api/types";
import { Waterfall } from "../../charts/waterfall";
import { plural } from "../../model/format";
import { basisOf, bufferTable, buffersOf, checkWorkload, findingPairs, matchOps, opsOf, pairTable, partsByOp, partsOf, type Basis, type Op, type Pair, type Part } from "../../model/compare";
import { go, here } from "../../model/location";
import { formatSort, markdownText, parseSort } from "../../model/tablemodel";
import { encode, parseTool, rangeQuery, timelineHref } from "../../model/toolurl";
import { asNumber, exact, show, signed } from "../../model/units";
import { dialog } from "../../shell/dialogs";
import { Copy } from "../../widgets/copy";
import { Icon } from "../../widgets/icon";
import { isSecond, Tile } from "../../widgets/metric";
import { ProblemPanel } from "../../widgets/problem";
import { Bar, Loading } from "../../widgets/shell";
import { DataTable } from "../../widgets/table";
import { useReport } from "../tool/load";
import { RowCard } from "../tool/card";

const OPS = 100_000; // rows; the server bounds the answer

function write(change: Record<string, string>, push = false): void {
  const { root, search } = here.peek();
  const p = new URLSearchParams(search);
  for (const [k, v] of Object.entries(change)) v ? p.set(k, v) : p.delete(k);
  go(`${root}compare?${[...p].map(([k, v]) => `${encodeURIComponent(k)}=${encode(v)}`).join("&")}`, !push);
}

export function ComparePage() {
  const { root, search } = here.value;
  const p = new URLSearchParams(search);
  const a = p.get("a") ?? "";
  const b = p.get("b") ?? "";
  const api = useMemo(() => new Api(root), [root]);
  const runs = useSignal<string[]>([]);
  useEffect(() => {
    document.title = a && b ? `${a} and ${b} · xprofd` : "Compare · xprofd";
  }, [a, b]);
  useEffect(() => {
    api.json<Runs>("runs", { limit: 200 }).then((got) => (runs.value = got.runs.filter((r) => r.state === "ready").map((r) => r.run)), () => undefined);
  }, [api]);
  return (
    <>
      <Bar crumbs={<><a href={root}>Runs</a> <Icon name="right" /> <b>Compare</b></>}>
        <Copy label="Link" title="Copy the link to this view" text={() => window.location.href} />
        <button type="button" class="tool" title="Keys and filters (?)" aria-label="Help" onClick={() => (dialog.value = "help")}><Icon name="help" /></button>
      </Bar>
      <main class="page broad tool-page">
        <header class="tool-head">
          <h1>Compare</h1>
          <p>What changed between two runs, and do the ops explain it?{a && b && <> <a href={`${root}trace?run=${encode(a)}&with=${encode(`@0@${encode(b)}`)}${markerQuery(stepsOf(p))}`}>Both timelines</a></>}</p>
        </header>
        <Pickers a={a} b={b} runs={runs.value} />
        {a && b
          ? <Both key={`${a}\0${b}`} api={api} a={a} b={b} search={p} />
          : (
            <div class="empty">
              <h2>Choose two runs</h2>
              <p>A is the one from before, B the one to judge. In the <a href={root}>list of runs</a> two rows can be ticked, too.</p>
            </div>
          )}
      </main>
    </>
  );
}

function Pickers({ a, b, runs }: { a: string; b: string; runs: readonly string[] }) {
  return (
    <form class="pickers" onSubmit={(e) => e.preventDefault()}>
      <datalist id="runs">{runs.map((r) => <option key={r} value={r} />)}</datalist>
      {([["a", "A, before", a], ["b", "B, after", b]] as const).map(([side, label, value]) => (
        <label key={side} class={`picker side-${side}`}>
          <b>{label}</b>
          <input
            class="field" list="runs" value={value} placeholder="name of a run" spellcheck={false}
            onChange={(e) => write({ [side]: e.currentTarget.value.trim() }, true)}
          />
        </label>
      ))}
      <button type="button" class="button" title="Swap A and B" onClick={() => write({ a: b, b: a }, true)}><Icon name="compare" /> Swap</button>
    </form>
  );
}

/** What a step is, where the address says so: of both runs. */
function stepsOf(search: URLSearchParams): Record<string, string> {
  const marker = search.get("step_marker");
  return marker ? { step_marker: marker } : {};
}

/** The same, for an address that leads on. */
function markerQuery(marker: Record<string, string>): string {
  return rangeQuery({ range: "", steps: "", marker: marker["step_marker"] ?? "" });
}

function Both({ api, a, b, search }: { api: Api; a: string; b: string; search: URLSearchParams }) {
  const marker = stepsOf(search);
  const overviewA = useReport(api, { run: a, tool: "overview_page", ...marker });
  const overviewB = useReport(api, { run: b, tool: "overview_page", ...marker });
  const opsA = useReport(api, { run: a, tool: "hlo_stats", limit: OPS, ...marker });
  const opsB = useReport(api, { run: b, tool: "hlo_stats", limit: OPS, ...marker });
  const failed = [overviewA, overviewB].find((x) => x.problem.value);
  if (failed) return <ProblemPanel problem={failed.problem.value!} retry={failed.retry} />;
  const [ra, rb, oa, ob] = [overviewA, overviewB, opsA, opsB].map((x) => x.report.value);
  if (!ra || !rb) return <><Loading what="Reading both runs…" /><div class="skeleton" aria-hidden="true"><i /><i /><i /><i /></div></>;
  const opsProblem = [opsA, opsB].find((x) => x.problem.value);
  return (
    <>
      {oa && ob ? <Explained a={a} b={b} ra={ra} rb={rb} oa={oa} ob={ob} search={search} /> : (
        <>
          <Tiles ra={ra} rb={rb} />
          {opsProblem ? <ProblemPanel problem={opsProblem.problem.value!} retry={opsProblem.retry} /> : <Loading what="Reading the ops of both…" />}
        </>
      )}
    </>
  );
}

/** Metrics of B with their change from A; what only A has stands last. */
function Tiles({ ra, rb, second = false }: { ra: Report; rb: Report; second?: boolean }) {
  const base = new Map(ra.metrics.map((m) => [m.id, m]));
  const differ = (m: Metric): boolean => m.value !== null || (base.get(m.id)?.value ?? null) !== null;
  const shown = rb.metrics.filter((m) => differ(m) && !/^(hosts|cores|device_type)$/.test(m.id));
  const list = shown.filter((m) => isSecond(m) === second);
  if (list.length === 0) return null;
  return (
    <section aria-label={second ? "More figures" : "Figures"}>
      <h2 class="unseen">{second ? "More figures" : "Figures"}</h2>
      <div class={second ? "tiles small" : "tiles"}>{list.map((m) => <Tile key={m.id} m={m} base={base.get(m.id)} small={second} />)}</div>
    </section>
  );
}

/** By how much, of what it was: beyond a few times the factor. */
function changed(factor: number): string {
  return factor > 4 || factor < 0.25 ? `×${show(factor, "")}` : signed(factor - 1, "fraction");
}

function verdict(basis: Basis, totalA: number, totalB: number, parts: readonly Part[]): { text: string; tone: string } {
  const d = totalB - totalA;
  const what = basis.perStep ? "A step" : "The ops of a core";
  if (Math.abs(d) < totalA * 0.005) return { text: `No change to speak of: ${what.toLowerCase()} takes ${show(Math.round(totalB), "ps")}.`, tone: "" };
  const size = (p: Part): number => (Math.sign(p.b - p.a) === Math.sign(d) ? Math.abs(p.b - p.a) : 0);
  const biggest = parts.reduce<Part | null>((best, p) => (size(p) > (best ? size(best) : 0) ? p : best), null);
  const word = biggest && size(biggest) >= Math.abs(d) / 2 ? "Most of it" : "The largest part";
  const takes = basis.perStep ? "takes" : "take";
  return {
    text: `B is ${d > 0 ? "slower" : "faster"}: ${what.toLowerCase()} ${takes} ${show(Math.round(totalB), "ps")} instead of ${show(Math.round(totalA), "ps")} (${changed(totalB / totalA)}).` +
      (biggest ? ` ${word}: ${biggest.name}, ${signed(Math.round(biggest.b - biggest.a), "ps")}.` : ""),
    tone: d > 0 ? "bad" : "good",
  };
}

const MOST = 9; // parts that stand by themselves

/** What hardly changed is not worth a row. */
const WORTH = 0.002; // of the largest change

export function folded(parts: readonly Part[]): Part[] {
  const outside = parts.filter((p) => p.name === "outside of ops");
  const ops = parts.filter((p) => p.name !== "outside of ops");
  const most = Math.max(0, ...parts.map((p) => Math.abs(p.b - p.a)));
  const shown = ops.filter((p, i) => i < MOST && Math.abs(p.b - p.a) > most * WORTH);
  const rest = ops.filter((p) => !shown.includes(p));
  const name = plural(rest.length, "other category", "other categories");
  const other = rest.reduce((s, p) => ({ name, a: s.a + p.a, b: s.b + p.b }), { name, a: 0, b: 0 });
  return [...shown, ...(rest.length ? [other] : []), ...outside];
}

function Explained({ a, b, ra, rb, oa, ob, search }: { a: string; b: string; ra: Report; rb: Report; oa: Report; ob: Report; search: URLSearchParams }) {
  const made = useMemo(() => {
    const pairs = matchOps(opsOf(oa), opsOf(ob));
    const basis = basisOf(ra, rb);
    return { pairs, basis, ...partsOf(pairs, basis), table: pairTable(pairs, basis), warnings: checkWorkload(ra, rb, pairs) };
  }, [ra, rb, oa, ob]);
  const { pairs, basis, parts, totalA, totalB, table, warnings } = made;
  const said = verdict(basis, totalA, totalB, parts);
  const byOp = search.get("by") === "op";
  const rows = byOp ? partsByOp(pairs, basis, MOST + 3) : folded(parts);
  return (
    <>
      {pairs.length > 0 && (
        <p class={`verdict ${said.tone}`}>
          <Icon name="compare" /> <span>{said.text}</span>
          <Copy title="Copy as Markdown, with the link" text={() => `**${markdownText(a)} → ${markdownText(b)}**\n\n${markdownText(said.text)}\n\n${rows.map((p) => `- ${markdownText(p.name)}: ${signed(Math.round(p.b - p.a), "ps")}`).join("\n")}\n\n${window.location.href}\n`} />
        </p>
      )}
      {warnings.length > 0
        ? <ul class="notes" aria-label="Are they the same work?">{warnings.map((w) => <li key={w.text} class={w.severity}><Icon name={w.severity === "info" ? "info" : "warn"} /> <span>{w.text}</span></li>)}</ul>
        : <p class="coverage"><Icon name="check" /> The same device, hosts, cores and programs: they can be compared.</p>}
      <Tiles ra={ra} rb={rb} />
      {pairs.length === 0
        ? <div class="empty"><h2>No ops to compare</h2><p>Neither run has HLO ops of a device in its profile.</p></div>
        : (
          <>
            <section class="panel" aria-label="What the change is made of">
              <div class="panel-head">
                <h2>What the change is made of</h2>
                <output class="table-count">{basis.perStep ? "time of a step" : "time of ops of a core over the whole profile"}</output>
                <div class="switch push" role="group" aria-label="In parts">
                  <button type="button" aria-pressed={!byOp} onClick={() => write({ by: "" })}>By category</button>
                  <button type="button" aria-pressed={byOp} onClick={() => write({ by: "op" })}>By op</button>
                </div>
              </div>
              <Waterfall parts={rows} totalA={totalA} totalB={totalB} labelA="A" labelB="B" />
              <Sums pairs={pairs} basis={basis} totalA={totalA} totalB={totalB} />
            </section>
            <Pairs table={table} pairs={pairs} a={a} b={b} search={search} />
          </>
        )}
      <Findings a={a} b={b} marker={stepsOf(search)} />
      <Memory a={a} b={b} />
      <BuffersPart a={a} b={b} search={search} />
      <Tiles ra={ra} rb={rb} second />
    </>
  );
}

function Sums({ pairs, basis, totalA, totalB }: { pairs: readonly Pair[]; basis: Basis; totalA: number; totalB: number }) {
  const sum = (keep: (p: Pair) => boolean): number =>
    pairs.filter(keep).reduce((s, p) => s + (p.b?.time ?? 0) * basis.scaleB - (p.a?.time ?? 0) * basis.scaleA, 0);
  const kinds: [string, number, number][] = [
    ["in ops that both have", sum((p) => Boolean(p.a && p.b)), pairs.filter((p) => p.a && p.b).length],
    ["in new ops", sum((p) => !p.a), pairs.filter((p) => !p.a).length],
    ["in ops that are gone", sum((p) => !p.b), pairs.filter((p) => !p.b).length],
  ];
  const explained = kinds.reduce((s, [, v]) => s + v, 0);
  return (
    <p class="sums">
      {basis.perStep && <>Of {signed(Math.round(totalB - totalA), "ps")}, ops explain <b>{signed(Math.round(explained), "ps")}</b>: </>}
      {kinds.map(([name, v, n], i) => <span key={name}>{i > 0 && ", "}{signed(Math.round(v), "ps")} {name} ({n})</span>)}
      {basis.perStep && <>; the other {signed(Math.round(totalB - totalA - explained), "ps")} are waiting, idle time and steps that are not whole</>}.
    </p>
  );
}

/** The weak points of both, and what became of them. They come apart from the page, and their absence takes nothing from it. */
function Findings({ a, b, marker }: { a: string; b: string; marker: Record<string, string> }) {
  const { root } = here.value;
  const api = useMemo(() => new Api(root), [root]);
  const [x, y] = [useReport(api, { run: a, tool: "smart_suggestion", ...marker }), useReport(api, { run: b, tool: "smart_suggestion", ...marker })];
  const [ra, rb] = [x.report.value, y.report.value];
  const list = useMemo(() => (ra && rb ? findingPairs(ra, rb) : []), [ra, rb]);
  if (list.length === 0) return null;
  const cell = (run: string, v: number) =>
    Number.isNaN(v) ? <span class="ago">not found</span> : <a href={`${root}smart_suggestion?run=${encode(run)}${markerQuery(marker)}`}>{show(v, "fraction")}</a>;
  return (
    <section class="panel" aria-label="Findings">
      <div class="panel-head"><h2>Findings</h2><output class="table-count">share of the devices' time{list.some((f) => f.of) && ", or of a peak where it says so"}, as rules measure it</output></div>
      <table class="plain">
        <thead><tr><th scope="col">Finding</th><th scope="col">A</th><th scope="col">B</th><th scope="col">Change</th></tr></thead>
        <tbody>
          {list.map((f) => {
            const d = (f.b || 0) - (f.a || 0);
            return (
              <tr key={f.rule}>
                <th scope="row">{f.text}{f.of && <span class="ago"> · {f.of}</span>}</th><td>{cell(a, f.a)}</td><td>{cell(b, f.b)}</td>
                <td class={f.of ? "" : d > 0 ? "bad" : d < 0 ? "good" : ""}>{Number.isNaN(f.a) ? "new" : Number.isNaN(f.b) ? "gone" : `${signed(Number((d * 100).toPrecision(3)), "")} points`}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

/** Memory in use, as allocators told it; nothing where they told nothing. */
function Memory({ a, b }: { a: string; b: string }) {
  const { root } = here.value;
  const api = useMemo(() => new Api(root), [root]);
  const [x, y] = [useReport(api, { run: a, tool: "memory_profile", limit: 1 }), useReport(api, { run: b, tool: "memory_profile", limit: 1 })];
  const [ra, rb] = [x.report.value, y.report.value];
  if (!ra || !rb) return null;
  const base = new Map(ra.metrics.map((m) => [m.id, m]));
  const list = rb.metrics.filter((m) => /^(peak_memory|capacity_memory)$/.test(m.id) && (m.value !== null || (base.get(m.id)?.value ?? null) !== null));
  if (list.length === 0) return null;
  return (
    <section aria-label="Memory">
      <h2 class="unseen">Memory</h2>
      <div class="tiles small">{list.map((m) => <Tile key={m.id} m={m} base={base.get(m.id)} small href={`${root}memory_profile?run=${encode(b)}`} hrefTitle="Memory of B over time" />)}</div>
    </section>
  );
}

/** Asked for when somebody wants them: the buffers of the program that ran longest in each. */
function BuffersPart({ a, b, search }: { a: string; b: string; search: URLSearchParams }) {
  if (search.get("buffers") !== "1")
    return <p class="part"><button type="button" class="button" onClick={() => write({ buffers: "1" }, true)}><Icon name="buffers" /> Compare the buffers of their programs</button></p>;
  return <Buffers a={a} b={b} search={search} />;
}

function Buffers({ a, b, search }: { a: string; b: string; search: URLSearchParams }) {
  const { root } = here.value;
  const api = useMemo(() => new Api(root), [root]);
  const [x, y] = [useReport(api, { run: a, tool: "memory_viewer", limit: OPS }), useReport(api, { run: b, tool: "memory_viewer", limit: OPS })];
  const [ra, rb] = [x.report.value, y.report.value];
  const pairs = useMemo(() => (ra && rb ? matchOps(buffersOf(ra), buffersOf(rb)) : null), [ra, rb]);
  const table = useMemo(() => pairs && bufferTable(pairs), [pairs]);
  const failed = [x, y].find((r) => r.problem.value);
  if (failed) return <ProblemPanel small problem={failed.problem.value!} retry={failed.retry} />;
  if (!table || !pairs) return <Loading what="Reading the buffers of both…" />;
  if (pairs.length === 0) return <p class="none">Neither run tells the buffers of its programs.</p>;
  const total = (side: "a" | "b"): number => pairs.reduce((s, p) => s + (p[side]?.time ?? 0), 0);
  const deltaAt = 5;
  const most = Math.max(1, ...table.rows.map((r) => Math.abs(asNumber(r[deltaAt])) || 0));
  return (
    <DataTable
      table={{ ...table, note: `Of the program that ran longest in each: ${show(total("a"), "bytes")} in A, ${show(total("b"), "bytes")} in B (${signed(total("b") - total("a"), "bytes")}).` }}
      q={search.get("q.buffers") ?? ""} onFilter={(q) => write({ "q.buffers": q })}
      sort={parseSort(search.get("sort.buffers"))} onSort={(s) => write({ "sort.buffers": formatSort(s) })}
      changed={new Set(search.get("cols.buffers")?.split(",").filter(Boolean))} onColumns={(ids) => write({ "cols.buffers": [...ids].join(",") })} where={window.location.href}
      whyNull={(c) => (c.id === "a" ? "A has no such buffer" : c.id === "b" ? "B has no such buffer" : "Only one of the runs has it")}
      cell={(row, i) => {
        if (i === 1) return <span class={`pill match-${String(row[i]).replace(/\W/g, "-")}`}>{String(row[i])}</span>;
        if (i !== deltaAt) return undefined;
        const d = asNumber(row[i]);
        return (
          <span class={`delta-cell ${d > 0 ? "bad" : d < 0 ? "good" : ""}`} title={exact(row[i], "bytes")}>
            <span class="delta-bar" style={{ width: `${(Math.abs(d) / most) * 100}%` }} />{signed(row[i] as number, "bytes")}
          </span>
        );
      }}
    />
  );
}

/** Columns that stand in the row's card unless they are asked for. */
const QUIET = ["abs_min", "a_text", "b_text", "a_program", "b_program", "a_name"];

function Pairs({ table, pairs, a, b, search }: { table: ReturnType<typeof pairTable>; pairs: readonly Pair[]; a: string; b: string; search: URLSearchParams }) {
  const { root } = here.value;
  const chosen = useSignal<readonly Cell[] | null>(null);
  const at = (id: string): number => table.columns.findIndex((c) => c.id === id);
  const deltaAt = at("delta");
  const matchAt = at("match");
  const most = useMemo(() => Math.max(1, ...table.rows.map((r) => Math.abs(asNumber(r[deltaAt])) || 0)), [table]);
  const usual = QUIET.filter((id) => table.rows.some((r) => r[at(id)] !== null));
  const changed = new Set(search.get("cols")?.split(",").filter(Boolean) ?? usual);
  const open = (run: string, op: Cell | undefined, program: Cell | undefined): string =>
    `${root}hlo_stats?run=${encode(run)}&op=${encode(String(op ?? ""))}${program ? `&program=${encode(String(program))}` : ""}${markerQuery(stepsOf(search))}`;
  /** By name and program: rows are ordered anew and filtered. */
  const op = (side: "a" | "b", name: Cell | undefined, program: Cell | undefined): Op | null =>
    pairs.find((p) => p[side]?.name === name && (!program || p[side]?.program === program))?.[side] ?? null;
  const happens = (run: string, o: Op | null): string =>
    o?.at ? timelineHref(root, parseTool(`?run=${encodeURIComponent(run)}${markerQuery(stepsOf(search))}`), { op: o.name, program: o.program, begin: o.at.begin, duration: o.at.duration, ...(o.at.host ? { host: o.at.host } : {}) }) : "";
  return (
    <DataTable
      table={{ ...table, title: `Ops: ${plural(table.rows.length, "pair")}` }} q={search.get("q") ?? ""} onFilter={(q) => write({ q })}
      sort={parseSort(search.get("sort")) ?? { column: "abs_min", descending: true }} onSort={(s) => write({ sort: formatSort(s) })}
      changed={changed} onColumns={(ids) => write({ cols: [...ids].join(",") })} where={window.location.href}
      group={search.get("group") ?? ""} onGroup={(group) => write({ group }, true)} onOpenGroup={(q) => write({ q, group: "" }, true)}
      isChosen={(row) => row === chosen.value} onChoose={(row) => (chosen.value = row)}
      whyNull={(c) => (c.id === "a" || c.id === "a_count" ? "A has no such op" : c.id === "b" || c.id === "b_count" ? "B has no such op" : "Only one of the runs has the op")}
      cell={(row, i) => {
        if (i === matchAt) return <span class={`pill match-${String(row[i]).replace(/\W/g, "-")}`}>{String(row[i])}</span>;
        if (i !== deltaAt) return undefined;
        const d = asNumber(row[i]);
        return (
          <span class={`delta-cell ${d > 0 ? "bad" : d < 0 ? "good" : ""}`} title={exact(row[i], "ps")}>
            <span class="delta-bar" style={{ width: `${(Math.abs(d) / most) * 100}%` }} />{signed(row[i] as number, "ps")}
          </span>
        );
      }}
      card={(row) => {
        const [nameA, programA, programB] = [row[at("a_name")] ?? row[0], row[at("a_program")], row[at("b_program")]];
        const sides = [["a", "A", a, nameA, programA], ["b", "B", b, row[0], programB]] as const;
        const [opA, opB] = [op("a", nameA, programA), op("b", row[0], programB)];
        return (
          <>
            <RowCard table={table} row={row} href="" close={() => (chosen.value = null)} />
            <p class="row none">
              {sides.filter(([side]) => row[at(side)] !== null).map(([side, label, run, name, program]) => {
                const there = happens(run, op(side, name, program));
                return (
                  <span key={side} class="row">
                    <a class="button" href={open(run, name, program)}><Icon name="table" /> In {label}</a>
                    {there && <a class="button" href={there}><Icon name="timeline" /> In the timeline of {label}</a>}
                  </span>
                );
              })}
              {opA && opB && opB.category === "custom-call" && (
                <a class="button" href={`${root}kernel_utilization?run=${encode(b)}&op=${encode(opB.name)}${opB.program ? `&program=${encode(opB.program)}` : ""}&versus_run=${encode(a)}&versus=${encode(opA.name)}`}>
                  <Icon name="bars" /> Inside of both kernels
                </a>
              )}
            </p>
          </>
        );
      }}
    />
  );
}
