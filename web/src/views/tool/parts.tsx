// The parts that every report may have, and how they look here.
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { Cell, Note, Report, Series, Table, Tree } from "../../api/report";
import { HeatMap } from "../../charts/heat";
import { Icicle } from "../../charts/icicle";
import { Scatter, type Dot } from "../../charts/scatter";
import { XyChart, type Pick } from "../../charts/xy";
import { count, plural } from "../../model/format";
import { measuresOf, pivot } from "../../model/matrix";
import { eventOf, opColumns, opOf, sameOp, timeOf, timeOfRequest, weightColumn } from "../../model/ops";
import { pickOf, rowAgain } from "../../model/picks";
import { isNumeric, parseSort } from "../../model/tablemodel";
import { formatSteps, timelineHref, type ToolUrl } from "../../model/toolurl";
import { asNumber } from "../../model/units";
import { Copy } from "../../widgets/copy";
import { Icon } from "../../widgets/icon";
import { DataTable } from "../../widgets/table";
import { TreeTable } from "../../widgets/treetable";
import { RowCard } from "./card";
import { OpCard } from "./opcard";
import { requestLink } from "./inference";
import { current, set, setArg, tableState } from "./state";

export interface PartProps {
  report: Report;
  s: ToolUrl;
  root: string;
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
export function TablePart({ t, first, all, ...p }: PartProps & { t: Table; first: boolean; all?: (() => void) | undefined }) {
  const { s, root, report } = p;
  const local = useSignal<readonly Cell[] | null>(null);
  const columns = useMemo(() => opColumns(t), [t]);
  const state = tableState(s, t.id, first, t.sort);
  const unit = t.columns[columns.duration]?.unit ?? "";
  const link = (row: readonly Cell[]): string => {
    const time = timeOf(row, columns, unit) ?? timeOfRequest(report, t, row);
    const id = opOf(row, columns);
    const event = eventOf(row, columns);
    if (!time && !id.op && !event) return "";
    const host = time?.host || (report.hosts.length === 1 ? report.hosts[0]! : s.hosts[0] ?? "");
    return timelineHref(root, s, { ...id, event, begin: time?.begin ?? null, duration: time?.duration ?? null, window: !id.op && !event, ...(host ? { host } : {}) });
  };
  const linked = columns.begin >= 0 || columns.op >= 0 || columns.event >= 0 || t.columns.some((c) => c.id === "request");
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
    if (pick) return set({ args: { ...s.args, [pick.arg]: row ? pick.nameOf(row) : "" }, ...(isOps ? (row ? opOf(row, columns) : { op: "", program: "" }) : {}) });
    if (!isOps) return;
    const id = row ? opOf(row, columns) : { op: "", program: "" };
    set(id);
  };
  return (
    <DataTable
      table={t} q={state.q} onFilter={state.setQ} sort={state.sort} onSort={state.setSort}
      changed={state.changed} onColumns={state.setChanged} group={state.group} onGroup={state.setGroup} onOpenGroup={state.openGroup} {...(linked ? { link } : {})}
      isChosen={pick ? isPicked : isOps ? (row) => sameOp(s, opOf(row, columns)) : (row) => row === local.value}
      onChoose={choose} where={window.location.href}
      card={(row) => <RowCard table={t} row={row} href={linked ? link(row) : ""} close={() => choose(null)} />}
      extra={t.total_rows > t.rows.length && all && <button type="button" class="button" onClick={all}>List all {count(t.total_rows)}</button>}
    />
  );
}

export function SeriesPart({ series, pick, ...p }: PartProps & { series: Series; pick?: Pick | undefined }) {
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
          : <SeriesChart series={series} href={href} pick={pick} p={p} />}
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

function SeriesChart({ series, href, pick, p }: { series: Series; href: ((point: readonly Cell[]) => string) | undefined; pick: Pick | undefined; p: PartProps }) {
  if (measuresOf(series).length > 0) return <LongHeat series={series} p={p} />;
  const steps = /^steps?$/i.test(series.x.label) && series.x.type === "number" ? { onSpan: chooseSteps } : {};
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

export function TreePart({ tree, title, ...p }: PartProps & { tree: Tree; title: string }) {
  const { s } = p;
  const view = s.args["view"] === "icicle" ? "icicle" : "tree";
  const byWaste = s.args["colour"] === "waste";
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
  const hidden = new Set(tree.columns.filter((x, i) => /^(program_id|op|first_.*|begin_ps)$/.test(x.id) || (!isNumeric(x) && i > 8)).map((x) => x.id));
  return (
    <section class="table-block" aria-label={title}>
      <div class="table-head">
        <h2>{title}</h2>
        <output class="table-count">{plural(tree.nodes.length, "node")}{tree.total_nodes > tree.nodes.length && ` of ${count(tree.total_nodes)}`}</output>
        <search class="search table-search">
          <Icon name="search" />
          <input data-filter type="text" spellcheck={false} aria-label={`Filter ${title}`} placeholder="word  -word" value={q} onInput={(e) => setArg("q.tree", e.currentTarget.value, false)} />
        </search>
        <div class="table-tools">
          <div class="switch" role="group" aria-label="Shown as">
            <button type="button" aria-pressed={view === "tree"} onClick={() => setArg("view", "")}>Tree</button>
            <button type="button" aria-pressed={view === "icicle"} onClick={() => setArg("view", "icicle")}>Icicle</button>
          </div>
          {view === "icicle" && tree.columns.some((x) => x.id === "wasted") && (
            <div class="switch" role="group" aria-label="Colours say">
              <button type="button" aria-pressed={!byWaste} title="Colours by name and category" onClick={() => setArg("colour", "")}>Name</button>
              <button type="button" aria-pressed={byWaste} title="Colours by how much of the hardware is unused" onClick={() => setArg("colour", "waste")}>Waste</button>
            </div>
          )}
          <Copy label="Markdown" title="Copy the first levels as Markdown" text={() => treeMarkdown(tree, weight)} />
        </div>
      </div>
      {view === "icicle" && weight >= 0
        ? <Icicle tree={tree} weight={weight} byWaste={byWaste} isChosen={isChosen} onChoose={(i) => isOp(i) && set(idOf(i), false)} />
        : <TreeTable tree={tree} title={title} q={q} sort={sort} onSort={(x) => setArg("sort.tree", x ? `${x.descending ? "-" : ""}${x.column}` : "", false)} isChosen={isChosen} isOp={isOp} onChoose={(i) => set(idOf(i))} link={link} hidden={hidden} />}
      {s.op !== "" && tree.columns.some((x) => x.type === "op") && <OpCard key={`${s.op} ${s.program}`} {...p} />}
    </section>
  );
}

function treeMarkdown(tree: Tree, weight: number): string {
  const depth = tree.nodes.map(() => 0);
  const out: string[] = [];
  tree.nodes.forEach((n, i) => {
    depth[i] = n.parent >= 0 ? depth[n.parent]! + 1 : 0;
    if (depth[i]! < 3 && out.length < 200) out.push(`${"  ".repeat(depth[i]!)}- \`${n.name.replaceAll("`", "'")}\`${weight >= 0 ? ` ${String(n.values[weight] ?? "n/a")} ${tree.columns[weight]!.unit}` : ""}`);
  });
  return `${out.join("\n")}\n`;
}
