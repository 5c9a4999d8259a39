// What the graph's page keeps in its address and reads from its report.
import type { Cell, Report, Table } from "../api/report";
import { asNumber } from "./units";

const TRAIL = 8;
const EXPANDED = 50;

/** A list of op names in the address; names of ops have no commas. */
export const namesOf = (list: string): string[] => list.split(",").filter(Boolean);

/** Adds what is not in the list, removes what is. */
export function flipName(list: string, name: string): string {
  const names = namesOf(list);
  return (names.includes(name) ? names.filter((n) => n !== name) : [...names, name].slice(-EXPANDED)).join(",");
}

/** Once more what is in the list already: of its neighbours more are drawn. */
export function addName(list: string, name: string): string {
  return [...namesOf(list), name].slice(-EXPANDED).join(",");
}

export function dropName(list: string, name: string): string {
  return namesOf(list).filter((n) => n !== name).join(",");
}

/** The ops that one came by, each once, the last last. */
export function trailOf(list: string, from: string, to: string): string {
  const names = namesOf(list).filter((n) => n !== from && n !== to);
  return (from && from !== to ? [...names, from] : names).slice(-TRAIL).join(",");
}

/** Does an op of that kind move data without changing it? */
export const copyOf = (opcode: string): boolean => /^(copy|copy-start|copy-done|async-copy.*)$/.test(opcode);

/** Computations from the program's entry to the op's own, and the ops between them that call the next. */
export function graphPath(r: Report): { computations: string[]; ops: string[] } {
  const column = (id: string, name: string): string[] => {
    const t = r.tables.find((x) => x.id === id);
    const at = t?.columns.findIndex((c) => c.id === name) ?? -1;
    return t && at >= 0 ? t.rows.map((row) => String(row[at] ?? "")) : [];
  };
  const own = column("nodes", "computation")[0];
  return { computations: [...column("path", "computation"), ...(own ? [own] : [])], ops: column("path", "op") };
}

const FILES: readonly (readonly [label: string, title: string, type: string, suffix: string, more: Record<string, string>])[] = [
  ["Short text", "HLO text of the program, without metadata and large constants", "short_txt", "short.txt", {}],
  ["Long text", "HLO text of the program, with all constants", "long_txt", "txt", {}],
  ["Long text with metadata", "HLO text of the program, with framework ops and source lines", "long_txt", "metadata.txt", { show_metadata: "true" }],
  ["pb", "HLO protobuf of the program", "pb", "hlo.pb", {}],
  ["pbtxt", "HLO protobuf of the program, as text", "pbtxt", "pbtxt", {}],
];

/** The program as files, whole: name, what it is, and the address below the project. */
export function programFiles(r: Report, run: string, program: string): { label: string; title: string; name: string; href: string }[] {
  const t = r.tables.find((x) => x.id === "modules");
  const [id, module] = [t?.columns.findIndex((c) => c.id === "program_id") ?? -1, t?.columns.findIndex((c) => c.id === "module") ?? -1];
  const row = t && id >= 0 && module >= 0 ? t.rows.find((x) => String(x[id]) === program) : undefined;
  // Whichever of them has the program; an address has room for so many.
  const hosts = r.hosts.slice(0, 100).join(",");
  if (!row || !hosts) return [];
  const name = String(row[module]);
  return FILES.map(([label, title, type, suffix, more]) => ({
    label, title, name: `${name.replace(/[^\w.-]+/g, "_")}.${suffix}`,
    href: `data/plugin/profile/data?${new URLSearchParams({ run, tag: "graph_viewer", hosts, module_name: name, type, ...more }).toString()}`,
  }));
}

/** The name that a piece of HLO text refers to, "%name" without the sign; "": it is none. */
export const referred = (piece: string): string => (/^%[\w.-]*\w$/.test(piece) ? piece.slice(1) : "");

/** A line of HLO text in pieces: each "%name" by itself. */
export const pieces = (line: string): string[] => line.split(/(%[\w.-]*\w)/);

/* --- what is drawn --- */

export interface GraphNode {
  id: string; // name of the op
  opcode: string;
  shape: string;
  computation: string;
  share: number; // of the time; NaN: not known
  more: number; // neighbours that are not drawn
  open: boolean; // more of its neighbours were asked for
  within: number; // the node that it is inside of, or -1
  inner: number; // ops that can be drawn inside of it
  opened: boolean; // they are
  kind: string; // of a fusion
  mover: string; // op inside that changes a layout
  mark?: "added" | "removed" | "changed"; // against another program
  what?: string; // that changed
}

export interface GraphEdge {
  from: number;
  to: number;
  kind: "operand" | "control" | "parameter";
  changes: string; // of the layout on the way: "order, tiles"
  fromLayout: string;
  toLayout: string;
  copy: boolean; // it is copied, or begins to be
  times: number;
  gone?: boolean; // only the other program has it
}

export interface Graph {
  nodes: GraphNode[];
  edges: GraphEdge[];
  left: number; // ops that are not drawn
  middle: string; // the op in question
  program: string;
}

const BUDGET = 400; // nodes that are drawn; the server gives no more

const tableOf = (r: Report, id: string): Table | undefined => r.tables.find((t) => t.id === id);
const cellText = (v: Cell | undefined): string => (v === null || v === undefined ? "" : String(v));
const columnOf = (t: Table, ...ids: string[]): number => {
  for (const id of ids) {
    const at = t.columns.findIndex((c) => c.id === id);
    if (at >= 0) return at;
  }
  return -1;
};

export function graphOf(r: Report, open: ReadonlySet<string> = new Set()): Graph | null {
  const nt = tableOf(r, "nodes");
  const et = tableOf(r, "edges");
  if (!nt || !et) return null;
  const col = (...ids: string[]): number => columnOf(nt, ...ids);
  const ecol = (...ids: string[]): number => columnOf(et, ...ids);
  const c = {
    id: Math.max(0, col("op", "name", "id", "node")), opcode: col("opcode", "category"), shape: col("shape", "type"), comp: col("computation"),
    share: col("time_fraction", "time_share", "share", "self_fraction", "self_time_fraction"), far: col("distance", "depth", "level"), time: col("self_time"),
    within: col("inside_node"), inner: col("inner_ops"), opened: col("opened"), kind: col("fusion_kind"), mover: col("layout_inside"), program: col("program_id"),
  };
  const more = [col("more"), col("more_operands"), col("more_users")].filter((i) => i >= 0);
  const whole = asNumber(r.metrics.find((m) => m.id === "program_time")?.value);
  const get = (row: readonly Cell[], i: number): string => (i < 0 ? "" : cellText(row[i]));
  const shareOf = (row: readonly Cell[]): number =>
    c.share >= 0 ? asNumber(row[c.share]) : c.time >= 0 && whole > 0 && row[c.time] !== null ? asNumber(row[c.time]) / whole : NaN;
  const kept = nt.rows.slice(0, BUDGET);
  const nodes = kept.map((row): GraphNode => ({
    id: get(row, c.id), opcode: get(row, c.opcode), shape: get(row, c.shape), computation: get(row, c.comp), share: shareOf(row), open: open.has(get(row, c.id)),
    more: more.reduce((n, i) => n + (asNumber(row[i]) || 0), 0),
    within: c.within >= 0 && row[c.within] !== null && asNumber(row[c.within]) < kept.length ? asNumber(row[c.within]) : -1,
    inner: c.inner >= 0 ? asNumber(row[c.inner]) || 0 : 0, opened: c.opened >= 0 && row[c.opened] === true, kind: get(row, c.kind), mover: get(row, c.mover),
  }));
  // By row where the report says so: names of ops in different computations may be alike.
  const byName = new Map(nodes.map((n, i) => [n.id, i]));
  const ends = { from: [ecol("from_node"), Math.max(0, ecol("from", "source", "operand"))], to: [ecol("to_node"), Math.max(0, ecol("to", "target", "user"))] } as const;
  const end = (e: readonly Cell[], [number, name]: readonly [number, number]): number | undefined => (number >= 0 ? asNumber(e[number]) : byName.get(cellText(e[name])));
  const e = { kind: ecol("kind"), layout: ecol("layout_changes"), changes: ecol("changes"), from: ecol("from_layout"), to: ecol("to_layout"), times: ecol("count") };
  const edges = et.rows.flatMap((row): GraphEdge[] => {
    const [a, b] = [end(row, ends.from), end(row, ends.to)];
    if (a === undefined || b === undefined || a === b || !nodes[a] || !nodes[b]) return [];
    const kind = get(row, e.kind);
    return [{
      from: a, to: b, kind: kind === "control" || kind === "parameter" ? kind : "operand", changes: get(row, e.changes) || (e.layout >= 0 && row[e.layout] === true ? "order" : ""),
      fromLayout: get(row, e.from), toLayout: get(row, e.to), copy: kind !== "parameter" && copyOf(nodes[b].opcode), times: e.times >= 0 ? asNumber(row[e.times]) || 1 : 1,
    }];
  });
  const centre = c.far >= 0 ? kept.findIndex((row, i) => asNumber(row[c.far]) === 0 && nodes[i]!.within < 0) : 0;
  return { nodes, edges, left: nt.total_rows - kept.length, middle: nodes[centre]?.id ?? "", program: kept[0] && c.program >= 0 ? cellText(kept[0][c.program]) : "" };
}

/** An edge into an op that is open leads on to what the operand is called in there; then it is not drawn itself. */
export function drawnEdges(nodes: readonly GraphNode[], edges: readonly GraphEdge[]): boolean[] {
  const led = new Set<string>();
  for (const e of edges) if (e.kind === "parameter") for (let at = nodes[e.to]!.within, n = 0; at >= 0 && n < 64; at = nodes[at]!.within, n++) led.add(`${e.from} ${at}`);
  return edges.map((e) => !(e.kind === "operand" && nodes[e.to]!.opened && led.has(`${e.from} ${e.to}`)));
}

/** What stands at an edge: both layouts, or only the memories where nothing else changes. */
export function layoutLabel(e: Pick<GraphEdge, "changes" | "fromLayout" | "toLayout">): string[] {
  if (!e.changes) return [];
  const space = (layout: string): string => /S\(\d+\)/.exec(layout)?.[0] ?? "S(0)";
  return e.changes === "memory" ? [`${space(e.fromLayout)} \u2192 ${space(e.toLayout)}`] : [e.fromLayout || "?", `\u2192 ${e.toLayout || "?"}`];
}
