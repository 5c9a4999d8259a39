// Cores where their chips sit, and who sends to whom: the tables "chips" and "edges" of the report of hosts and steps.
import type { Cell, Report, Table } from "../api/report";
import { asNumber } from "./units";

export interface Chip {
  host: string;
  core: string; // the plane
  id: number; // as programs number cores; NaN: not told
  chip: number;
  part: number; // which core of the chip
  slice: number;
  x: number;
  y: number;
  z: number;
  values: number[]; // of the measures; NaN: none
  begin: Cell; // of the step
}

export const MEASURES = [
  ["own_time", "Step less waiting"], ["step_time", "Step time"], ["compute", "Compute"], ["waiting", "Waiting"], ["input", "Input"],
] as const;

const cellsOf = (t: Table): ((row: readonly Cell[], id: string) => Cell) => {
  const at = new Map(t.columns.map((c, i) => [c.id, i]));
  return (row, id) => row[at.get(id) ?? -1] ?? null;
};

export const tableOf = (r: Report, id: string): Table | undefined => r.tables.find((t) => t.id === id);

export function chipsOf(t: Table): Chip[] {
  const get = cellsOf(t);
  const whole = (row: readonly Cell[], id: string): number => Math.max(0, Math.round(asNumber(get(row, id)) || 0));
  return t.rows.map((row) => ({
    host: String(get(row, "host") ?? ""), core: String(get(row, "core") ?? ""), id: asNumber(get(row, "id")),
    chip: asNumber(get(row, "chip")), part: whole(row, "core_in_chip"), slice: whole(row, "slice"),
    x: whole(row, "x"), y: whole(row, "y"), z: whole(row, "z"),
    values: MEASURES.map(([id]) => asNumber(get(row, id))), begin: get(row, "first_begin_ps"),
  }));
}

/** Chips of one slice and one z, as wide and high as their numbers reach; where that is far, of the rows and columns that hold some. */
export interface Plane {
  slice: number;
  z: number;
  columns: number;
  rows: number;
  column: Map<number, number>; // of an x
  row: Map<number, number>;
  parts: number; // cores of a chip
  chips: number[]; // places in the list
}

const WIDE = 64; // no slice that there is has a longer side

function placesOf(values: readonly number[]): { at: Map<number, number>; n: number } {
  const used = [...new Set(values)].sort((a, b) => a - b);
  const reach = (used.at(-1) ?? 0) + 1;
  return reach <= WIDE ? { at: new Map(used.map((v) => [v, v])), n: reach } : { at: new Map(used.map((v, i) => [v, i])), n: used.length };
}

export function planesOf(chips: readonly Chip[]): Plane[] {
  const by = new Map<string, Plane>();
  chips.forEach((c, i) => {
    const key = `${c.slice} ${c.z}`;
    const p: Plane = by.get(key) ?? { slice: c.slice, z: c.z, columns: 0, rows: 0, column: new Map(), row: new Map(), parts: 1, chips: [] };
    by.set(key, p);
    p.parts = Math.max(p.parts, Math.min(16, c.part + 1));
    p.chips.push(i);
  });
  for (const p of by.values()) {
    const [x, y] = [placesOf(p.chips.map((i) => chips[i]!.x)), placesOf(p.chips.map((i) => chips[i]!.y))];
    [p.columns, p.column, p.rows, p.row] = [x.n, x.at, y.n, y.at];
  }
  return [...by.values()].sort((a, b) => a.slice - b.slice || a.z - b.z);
}

export interface Edge {
  from: number; // places in the list of chips
  to: number;
  latency: number;
  wait: number;
  rate: number;
  count: number;
}

/** Those of which both ends are here; counted are cores whose sender is not here, and such of which nobody says who sends to them. */
export function edgesOf(t: Table, chips: readonly Chip[]): { edges: Edge[]; open: number; untold: number } {
  const get = cellsOf(t);
  const byName = new Map(chips.map((c, i) => [`${c.host}\n${c.core}`, i]));
  const place = (row: readonly Cell[], host: string, core: string): number => byName.get(`${String(get(row, host) ?? "")}\n${String(get(row, core) ?? "")}`) ?? -1;
  const all = t.rows.map((row): Edge => ({
    from: place(row, "from_host", "from_core"), to: place(row, "host", "core"),
    latency: asNumber(get(row, "mean_time")), wait: asNumber(get(row, "wait")), rate: asNumber(get(row, "rate")), count: asNumber(get(row, "count")),
  }));
  const edges = all.filter((e) => e.from >= 0 && e.to >= 0);
  const untold = t.rows.filter((row) => get(row, "from") === null).length;
  return { edges, open: t.rows.filter((row) => get(row, "from") !== null && get(row, "from_host") === null).length, untold };
}

export interface Channel {
  key: string;
  op: string;
  channel: string;
  kind: string;
  latency: number;
}

export function channelsOf(t: Table): Channel[] {
  const get = cellsOf(t);
  return t.rows.map((row) => ({
    key: String(get(row, "key") ?? ""), op: String(get(row, "op") ?? ""), channel: String(get(row, "channel") ?? ""),
    kind: String(get(row, "kind") ?? ""), latency: asNumber(get(row, "mean_time")),
  })).filter((c) => c.key !== "");
}

/** "4x8": sizes of a slice; null: it is not of that form, or holds fewer chips. */
export function topologyOf(text: string, chips: number): number[] | null {
  const m = /^(\d{1,5})x(\d{1,5})(?:x(\d{1,5}))?$/.exec(text.trim());
  const sizes = m ? m.slice(1).filter((x) => x !== undefined).map(Number) : [];
  const all = sizes.reduce((a, b) => a * b, 1);
  return m && all >= Math.max(1, chips) && all <= 1 << 20 ? sizes : null;
}
