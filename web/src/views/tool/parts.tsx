// The parts that every report may have, and how they look here.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { Cell, Note, Report, Series, Table, Tree } from "../../api/report";
import { HeatMap } from "../../charts/heat";
import { Icicle } from "../../charts/icicle";
import { Scatter, type Dot } from "../../charts/scatter";
import { XyChart, type Pick } from "../../charts/xy";
import { compared, comparedTree, type Base } from "../../model/base";
import { count, plural } from "../../model/format";
import { measuresOf, pivot } from "../../model/matrix";
import { eventOf, opColumns, opOf, sameOp, timeOf, timeOfRequest, weightColumn } from "../../model/ops";
import { groupHref, groupOf, hostHref } from "../../model/grouprows";
import { shownKernel } from "../../model/kernels";
import { pickOf, rowAgain } from "../../model/picks";
import { isNumeric, parseSort } from "../../model/tablemodel";
import { runTitle } from "../../model/runname";
import { formatSteps, timelineHref, type ToolUrl } from "../../model/toolurl";
import { found, inverted, treeCsv } from "../../model/treemodel";
import { asNumber, show } from "../../model/units";
import { Copy } from "../../widgets/copy";
import { Delta } from "../../widgets/delta";
import { Icon } from "../../widgets/icon";
import { save } from "../../widgets/save";
import { ColumnChooser, DataTable } from "../../widgets/table";
import { TreeTable } from "../../widgets/treetable";
import { RowCard } from "./card";
import { OpCard } from "./opcard";
import { requestLink } from "./inference";
import { current, set, setArg, tableState } from "./state";

export interface PartProps {
  report: Report;
  s: ToolUrl;
  root: string;
  base?: Base | null; // the run that all is held against, once its reports are here
}

export function Notes({ notes }: { notes: readonly Note[] }) {
  if (notes.length === 0) return null;
  return (
    <ul class="notes" aria-label="Notes">
      {notes.map((n, i) => (
        <li key={i} class={n.severity}>
          <Icon name={n.severity === "info" ? "info" : "warn"} /> <span><span class="unseen">{n.severity}: </span>{n.text}</span>
        </li>
      ))}
    </ul>
  );
}

export function Missing({ report }: { report: Report }) {
  const open = useSignal(false);
  const n = report.missing_hosts.length;
  if (n === 0) return null;
  return (
    <div class="notes missing" role="group" aria-label="Hosts that could not be read">
      <p class="warning">
        <Icon name="warn" />
        <span>
          <b>{plural(n, "host")} of {count(n + report.hosts.length)} could not be read;</b> the numbers below are of the others.{" "}
          <button type="button" class="link" aria-expanded={open.value} onClick={() => (open.value = !open.peek())}>{open.value ? "Hide" : "Which, and why"}</button>
        </span>
      </p>
      {open.value && (
        <dl>
          {report.missing_hosts.map((h) => (
            <div key={h.host}><dt>{h.host}</dt><dd>{h.detail} <code>{h.code}</code>{h.offset !== undefined && <> at byte {count(h.offset)}</>}</dd></div>
          ))}
        </dl>
      )}
    </div>
  );
}

/** `unlisted`: there are rows that the server kept back; ask for all of them. */
export function TablePart({ t: own, first, all, ...p }: PartProps & { t: Table; first: boolean; all?: (() => void) | undefined }) {
  const { s, root, report } = p;
  const t = useMemo(() => (p.base ? compared(own, p.base) : own), [own, p.base]);
  const local = useSignal<readonly Cell[] | null>(null);
  const columns = useMemo(() => opColumns(t), [t]);
  const state = tableState(s, t.id, first, t.sort);
  const unit = t.columns[columns.duration]?.unit ?? "";
  const link = (row: readonly Cell[]): string => {
    const time = timeOf(row, columns, unit) ?? timeOfRequest(report, t, row);
    const id = opOf(row, columns);
    const event = eventOf(row, columns);
    if (!time && !id.op && !event) return hostHref(t, row, s, root);
    const host = time?.host || (report.hosts.length === 1 ? report.hosts[0]! : s.hosts[0] ?? "");
    return timelineHref(root, s, { ...id, event, begin: time?.begin ?? null, duration: time?.duration ?? null, window: !id.op && !event, ...(host ? { host } : {}) });
  };
  const groups = groupOf(t);
  const linked = columns.begin >= 0 || columns.op >= 0 || columns.event >= 0 || t.columns.some((c) => c.id === "request") || t.id === "hosts";
  const isOps = columns.op >= 0;
  const pick = pickOf(t);
  const again = useMemo(() => (pick ? rowAgain(t, local.value) : null), [t, local.value]);
  // By name, as the address has it; of several rows with that name, the one that was clicked.
  const isPicked = (row: readonly Cell[]): boolean => {
    if (pick!.nameOf(row) !== s.args[pick!.arg] || (isOps && s.op !== "" && !sameOp(s, opOf(row, columns)))) return false;
    return row === again || !again || pick!.nameOf(again) !== pick!.nameOf(row) || (isOps && !sameOp(opOf(again, columns), opOf(row, columns)));
  };
  const choose = (row: readonly Cell[] | null): void => {
    local.value = row;
    // A run is one of the kernel that is shown, which other hosts or another range may not have.
    const kernel = t.id === "runs" && row ? shownKernel(report) : null;
    if (pick) return set({ args: { ...s.args, ...(row ? pick.more(row) : pick.gone), [pick.arg]: row ? pick.nameOf(row) : "" }, ...(kernel ? { op: kernel.op, program: kernel.program } : isOps ? (row ? opOf(row, columns) : { op: "", program: "" }) : {}) });
    if (!isOps) return;
    const id = row ? opOf(row, columns) : { op: "", program: "" };
    set({ ...id, ...(t.id === "calls" ? { args: { ...s.args, occurrence: "", on: "" } } : {}) }); // the run was one of another kernel's
  };
  return (
    <DataTable
      table={t} q={state.q} onFilter={state.setQ} sort={state.sort} onSort={state.setSort}
      changed={state.changed} onColumns={state.setChanged} group={state.group} onGroup={state.setGroup} onOpenGroup={state.openGroup} {...(linked ? { link } : {})}
      isChosen={pick ? isPicked : isOps ? (row) => sameOp(s, opOf(row, columns)) : (row) => row === local.value}
      onChoose={choose} where={window.location.href} {...(t !== own ? { cell: deltaCell(t), whyNull: baseNull(p.base!.run) } : {})}
      card={(row) => <RowCard table={t} row={row} href={linked ? link(row) : ""} rows={groups ? { href: groupHref(groups, t, row, s, root), what: groups.what } : null} close={() => choose(null)} />}
      extra={t.total_rows > t.rows.length && all && <button type="button" class="button" onClick={all}>List all {count(t.total_rows)}</button>}
    />
  );
}

/** Changes as signed numbers with a bar. */
function deltaCell(t: Table): (row: readonly Cell[], i: number) => ComponentChildren | undefined {
  const at = t.columns.findIndex((c) => c.id === "base_delta");
  const most = t.rows.reduce((m, r) => Math.max(m, Math.abs(asNumber(r[at])) || 0), 0);
  const { unit } = t.columns[at]!;
  return (row, i) => (i === at && row[i] !== null ? <Delta v={row[i]} unit={unit} most={most} worse={unit === "ps" || unit === "ns" || unit === "bytes" ? true : null} /> : undefined);
}

const baseNull = (run: string) => (c: Table["columns"][number]): string => (c.id.startsWith("base") ? `${runTitle(run)} has no such row` : "The profile does not say");

export function SeriesPart({ series, pick, span, ...p }: PartProps & { series: Series; pick?: Pick | undefined; span?: Span | undefined }) {
  const asTable = useSignal(false);
  const href = series.x.label === "percentile" ? requestLink(p) : stepLink(p);
  const table = useMemo(() => seriesTable(series), [series]);
  return (
    <section class="panel" aria-label={series.title}>
      <div class="panel-head">
        <h2>{series.title}</h2>
        <output class="table-count">
          {measuresOf(series).length > 0 ? extent(series) : plural(series.points.length, "point")}{series.reduced && ` of ${count(series.total_points)}; the least and the greatest are kept`}
        </output>
        <button type="button" class="button push" aria-pressed={asTable.value} onClick={() => (asTable.value = !asTable.peek())}>
          <Icon name="table" /> {asTable.value ? "Chart" : "Table"}
        </button>
      </div>
      {asTable.value
        ? <TablePart {...p} t={table} first={false} />
        : series.points.length === 0
          ? <p class="none">No points.</p>
          : <SeriesChart series={series} href={href} pick={pick} span={span} p={p} />}
    </section>
  );
}

function extent(series: Series): string {
  const count = (i: number): number => new Set(series.points.map((x) => String(x[i]))).size;
  return `${plural(count(1), "host")} × ${plural(count(0), series.x.label || "column")}`;
}

/** Every page is then about these steps only; a moment may lie outside them. */
function chooseSteps(a: Cell | undefined, b: Cell | undefined): void {
  set({ range: "", steps: formatSteps(asNumber(a), asNumber(b)), args: { ...current().args, at: "" } });
}

type Span = (a: Cell | undefined, b: Cell | undefined) => void;

function SeriesChart({ series, href, pick, span, p }: { series: Series; href: ((point: readonly Cell[]) => string) | undefined; pick: Pick | undefined; span: Span | undefined; p: PartProps }) {
  if (measuresOf(series).length > 0) return <LongHeat series={series} p={p} />;
  const steps = span ? { onSpan: span } : /^steps?$/i.test(series.x.label) && series.x.type === "number" ? { onSpan: chooseSteps } : {};
  if (series.kind === "heat") return <HeatMap s={series} {...steps} onRow={(name) => p.report.hosts.includes(name) && set({ hosts: [name] })} />;
  if (series.kind === "scatter") return <ScatterSeries series={series} />;
  return <XyChart s={series} pick={pick} {...steps} {...(href && /step|^percentile$/i.test(series.x.label) ? { href } : {})} />;
}

function LongHeat({ series, p }: { series: Series; p: PartProps }) {
  const measures = measuresOf(series);
  const asked = p.s.args["measure"] ?? "";
  const measure = measures.includes(asked) ? asked : measures[0]!;
  const wide = useMemo(() => pivot(series, measure, p.report.hosts), [series, measure]);
  const words = (m: string): string => ({ own_time: "Step less waiting", step_time: "Step time" })[m] ?? m.replaceAll("_", " ");
  return (
    <>
      {measures.length > 1 && (
        <div class="switch heat-switch" role="group" aria-label="Shown as colour">
          {measures.map((m) => <button key={m} type="button" aria-pressed={m === measure} onClick={() => setArg("measure", m, false)}>{words(m)}</button>)}
        </div>
      )}
      <HeatMap s={{ ...wide, y: { ...wide.y, label: words(measure) } }} first="late" onRow={(name) => p.report.hosts.includes(name) && set({ hosts: [name] })} {...(/^steps?$/i.test(series.x.label) ? { onSpan: chooseSteps } : {})} />
    </>
  );
}

function ScatterSeries({ series }: { series: Series }) {
  const dots = useMemo(
    (): Dot[] => series.points.flatMap((pt, k) => series.names.map((name, i): Dot => ({
      key: `${k},${i}`, name: name || String(k), x: asNumber(pt[0]), y: asNumber(pt[i + 1]), weight: 0.05, group: name, facts: [],
    }))),
    [series],
  );
  return <Scatter dots={dots} roofs={[]} x={series.x} y={series.y} groups={series.names} colours={series.names.map((_, i) => `var(--c${i % 8})`)} chosen="" title={series.title} />;
}

/** Where a table says when each step began, a step's bar opens the timeline there. */
function stepLink({ report, s, root }: PartProps): ((point: readonly Cell[]) => string) | undefined {
  const t = report.tables.find((x) => /step/.test(x.id) && opColumns(x).begin >= 0);
  if (!t) return undefined;
  const c = opColumns(t);
  const key = t.columns.findIndex((x) => /^(step|step_num|number|name)$/.test(x.id));
  if (key < 0) return undefined;
  return (point) => {
    const row = t.rows.find((r) => String(r[key]) === String(point[0]));
    const time = row && timeOf(row, c, t.columns[c.duration]?.unit ?? "");
    return time ? timelineHref(root, s, { begin: time.begin, duration: time.duration, ...(time.host ? { host: time.host } : {}) }) : "";
  };
}

function seriesTable(x: Series): Table {
  return {
    id: `series-${x.id}`, title: x.title, note: null,
    columns: [
      { id: "x", label: x.x.label || "x", unit: x.x.unit, type: x.x.type },
      ...x.names.map((name, i) => ({ id: `y${i}`, label: name || x.y.label, unit: x.y.unit, type: "number" as const })),
    ],
    rows: x.points, total_rows: x.points.length, rest: null, sort: null,
  };
}

const VIEWS = [["tree", "Tree", "As a table"], ["icicle", "Icicle", "Each as wide as its share, below what it belongs to"], ["callers", "By caller", "The ops first, and below each who asked for it: the other way round"]] as const;

export function TreePart({ tree: own, title, ...p }: PartProps & { tree: Tree; title: string }) {
  const { s } = p;
  const view = VIEWS.find(([v]) => v === s.args["view"])?.[0] ?? "tree";
  const tree = useMemo(() => {
    const t = p.base ? comparedTree(own, p.base) : own;
    return view === "callers" ? inverted(t) : t;
  }, [own, p.base, view]);
  const changed = tree.columns.some((c) => c.id === "base_delta");
  const asked = s.args["colour"];
  const colour = asked === "waste" || (asked === "change" && changed) ? asked : "name";
  const weight = weightColumn(tree.columns);
  const sort = parseSort(s.args["sort.tree"] ?? "") ?? (weight >= 0 ? { column: tree.columns[weight]!.id, descending: true } : null);
  const q = s.args["q.tree"] ?? "";
  const program = tree.columns.findIndex((c) => c.id === "program_id");
  const op = tree.columns.findIndex((c) => c.type === "op" || c.id === "op");
  const c = opColumns(tree);
  const idOf = (i: number) => {
    const n = tree.nodes[i]!;
    return { op: op >= 0 ? String(n.values[op] ?? "") || n.name : n.name, program: program >= 0 ? String(n.values[program] ?? "") : "" };
  };
  const parents = useMemo(() => new Set(tree.nodes.map((n) => n.parent)), [tree]);
  const isOp = (i: number): boolean => (op >= 0 ? Boolean(tree.nodes[i]!.values[op]) : !parents.has(i));
  const isChosen = (i: number): boolean => isOp(i) && sameOp(s, idOf(i));
  const link = (i: number): string => {
    const time = timeOf(tree.nodes[i]!.values, c, tree.columns[c.duration]?.unit ?? "");
    return time ? timelineHref(p.root, s, { ...idOf(i), begin: time.begin, duration: time.duration, ...(time.host ? { host: time.host } : {}) }) : "";
  };
  const changedColumns = new Set((s.args["cols.tree"] ?? "").split(",").filter(Boolean));
  const blank = useMemo(() => tree.columns.map((_, i) => tree.nodes.every((n) => n.values[i] === null || n.values[i] === undefined || n.values[i] === "")), [tree]);
  const plumbing = (x: Tree["columns"][number], i: number): boolean => /^(program_id|op|first_.*|begin_ps)$/.test(x.id) || (!isNumeric(x) && i > 8);
  const shown = tree.columns.map((_, i) => i).filter((i) => (!plumbing(tree.columns[i]!, i) && !blank[i]!) !== changedColumns.has(tree.columns[i]!.id));
  const hits = useMemo(() => found(tree, q), [tree, q]);
  const sum = weight >= 0 && hits ? hits.own.reduce((a, i) => a + (asNumber(tree.nodes[i]!.values[weight]) || 0), 0) : 0;
  return (
    <section class="table-block" aria-label={title}>
      <div class="table-head">
        <h2>{title}</h2>
        <output class="table-count">{plural(tree.nodes.length, "node")}{tree.total_nodes > tree.nodes.length && ` of ${count(tree.total_nodes)}`}{hits && hits.errors.length === 0 && `; ${plural(hits.own.length, "match", "matches")}${weight >= 0 ? `, ${show(sum, tree.columns[weight]!.unit)}` : ""}`}</output>
        <search class="search table-search">
          <Icon name="search" />
          <input data-filter type="text" spellcheck={false} autocomplete="off" aria-label={`Filter ${title}`} aria-invalid={(hits?.errors.length ?? 0) > 0} placeholder="word  -word  column:word  column>10us" value={q} onInput={(e) => setArg("q.tree", e.currentTarget.value, false)} />
        </search>
        <div class="table-tools">
          <div class="switch" role="group" aria-label="Shown as">
            {VIEWS.map(([v, word, hint]) => <button key={v} type="button" aria-pressed={view === v} title={hint} onClick={() => setArg("view", v === "tree" ? "" : v)}>{word}</button>)}
          </div>
          {view !== "tree" && tree.columns.some((x) => x.id === "wasted") && (
            <div class="switch" role="group" aria-label="Colours say">
              <button type="button" aria-pressed={colour === "name"} title="Colours by name and category" onClick={() => setArg("colour", "")}>Name</button>
              <button type="button" aria-pressed={colour === "waste"} title="Colours by how much of the hardware is unused" onClick={() => setArg("colour", "waste")}>Waste</button>
              {changed && <button type="button" aria-pressed={colour === "change"} title="Colours by how much more or less it took than in the base" onClick={() => setArg("colour", "change")}>Change</button>}
            </div>
          )}
          {view !== "icicle" && <ColumnChooser table={tree} shown={{ columns: shown, empty: blank.flatMap((b, i) => (b ? [i] : [])) }} changed={changedColumns} onColumns={(ids) => setArg("cols.tree", [...ids].join(","), false)} />}
          <Copy label="Markdown" title="Copy the first levels as Markdown, with the link" text={() => `**${title}** · ${window.location.href}\n\n${treeMarkdown(tree, weight)}`} />
          <button type="button" class="button" title="Save all nodes as CSV: each with its path, exact values" onClick={() => save(`${tree.id}.csv`, "text/csv", treeCsv(tree))}><Icon name="download" /> CSV</button>
        </div>
      </div>
      {hits && hits.errors.length > 0 && <p class="filter-error" role="alert">{hits.errors.join("; ")}</p>}
      {p.base && changed && <p class="table-note">Against {runTitle(p.base.run)}, {p.base.scale.words}.</p>}
      {view === "callers" && <p class="table-note">Ops of one kind together, then the framework&apos;s op, and below each what that was called by: scopes from the innermost out.</p>}
      {view !== "tree" && weight >= 0 && <Icicle tree={tree} weight={weight} colour={colour} isChosen={isChosen} onChoose={(i) => isOp(i) && set(idOf(i), false)} />}
      {(view !== "icicle" || weight < 0) && <TreeTable tree={tree} title={title} q={q} sort={sort} onSort={(x) => setArg("sort.tree", x ? `${x.descending ? "-" : ""}${x.column}` : "", false)} isChosen={isChosen} isOp={isOp} onChoose={(i) => set(idOf(i))} link={link} columns={shown} />}
      {s.op !== "" && tree.columns.some((x) => x.type === "op") && <OpCard key={`${s.op} ${s.program}`} {...p} />}
    </section>
  );
}

function treeMarkdown(tree: Tree, weight: number): string {
  const depth = tree.nodes.map(() => 0);
  const out: string[] = [];
  tree.nodes.forEach((n, i) => {
    depth[i] = n.parent >= 0 ? depth[n.parent]! + 1 : 0;
    if (depth[i]! < 3 && out.length < 200) out.push(`${"  ".repeat(depth[i]!)}- \`${n.name.replaceAll("`", "'")}\`${weight >= 0 ? ` ${show(n.values[weight], tree.columns[weight]!.unit)}` : ""}`);
  });
  return `${out.join("\n")}\n`;
}
