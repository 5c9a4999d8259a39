// What the pages of hardware, kernels and the roofline make of a report's tables.
import type { Cell, Column, Series, Table, Tree } from "../api/report";
import { asNumber, show } from "./units";

/** Part of a plane, in its units. */
export interface Area {
  x0: number;
  x1: number;
  y0: number;
  y1: number;
}

const digits = (v: number): string => v.toPrecision(4).replace("e+", "e");

/** The filter of the ops' table that leaves those in the area, in place of an area that was there. */
export function areaFilter(q: string, x: string, y: string, a: Area | null): string {
  const rest = q.split(/\s+/).filter((w) => w !== "" && ![x, y].some((id) => w.startsWith(`${id}>=`) || w.startsWith(`${id}<=`)));
  return [...rest, ...(a ? [`${x}>=${digits(a.x0)}`, `${x}<=${digits(a.x1)}`, `${y}>=${digits(a.y0)}`, `${y}<=${digits(a.y1)}`] : [])].join(" ");
}

/** The sides of the area that such a filter has: x from, to, y from, to; null: open. */
export function areaOf(q: string, x: string, y: string): (string | null)[] {
  const words = q.split(/\s+/);
  return [`${x}>=`, `${x}<=`, `${y}>=`, `${y}<=`].map((start) => words.find((w) => w.startsWith(start))?.slice(start.length) ?? null);
}

const PLACES = 64; // as many characters may an expression have

/** An expression for just this name; part of a text where it is too long for one. */
export function nameFilter(op: string): string {
  const plain = op.length <= PLACES - 2 && /^[\x20-\x7e]+$/.test(op);
  return plain ? `/^${op.replace(/[^\w\s]/g, (c) => `\\${c}`)}$/` : op;
}

/** From used to unused: blue to orange, which all eyes tell apart; the names on them stay dark. */
const WASTE: readonly (readonly [number, number, number])[] = [[132, 178, 242], [214, 226, 240], [246, 196, 140], [226, 126, 44]];

export function wasteColour(share: number): string {
  if (Number.isNaN(share)) return "#c3c8d0";
  const at = Math.min(0.9999, Math.max(0, share)) * (WASTE.length - 1);
  const [a, b] = [WASTE[Math.floor(at)]!, WASTE[Math.floor(at) + 1]!];
  const f = at - Math.floor(at);
  return `rgb(${a.map((v, k) => Math.round(v + (b[k]! - v) * f)).join(" ")})`;
}

/** Of a node's time what no hardware was used in; NaN: that is not known. */
export function unusedOf(tree: Tree, i: number): number {
  const at = (id: string): number => tree.columns.findIndex((c) => c.id === id);
  const [share, wasted] = [at("share"), at("wasted")];
  if (share < 0 || wasted < 0) return NaN;
  const values = tree.nodes[i]!.values;
  return asNumber(values[wasted]) / asNumber(values[share]);
}

/** From half of what it was (blue) to twice that (orange); the middle is pale. */
export function changeColour(d: number): string {
  if (Number.isNaN(d)) return "#c3c8d0";
  return wasteColour((Math.max(-1, Math.min(1, d)) + 1) / 2);
}

/** By how much a node changed against the base: -1 half of it or less, 0 the same, 1 twice or more; NaN: it was not there. */
export function changeOf(tree: Tree, i: number): number {
  const place = tree.columns.findIndex((c) => c.id === "base");
  const values = tree.nodes[i]!.values;
  const [was, delta] = [asNumber(values[place]), asNumber(values[place + 1])];
  return place >= 0 && was > 0 ? Math.max(-1, Math.min(1, Math.log2(Math.max(1e-9, (was + delta) / was)))) : NaN;
}

/** What is above the whole is drawn as the whole, and counted. */
export function matrixSeries(t: Table): { series: Series; above: number } {
  const names = t.rows.map((r) => String(r[0]));
  let above = 0;
  const points = t.columns.slice(1).map((c, d) => [c.id, ...t.rows.map((r) => {
    const v = asNumber(r[d + 1]);
    if (Number.isNaN(v)) return null;
    if (Math.abs(v) > 1) above++;
    return Math.max(-1, Math.min(1, v));
  })]);
  const series: Series = {
    id: "units", title: t.title, x: { label: "device", unit: "", type: "text" }, y: { label: "Busy", unit: "fraction" },
    kind: "heat", names, points, total_points: points.length, reduced: false,
  };
  return { series, above };
}

const unitsOf = (t: Table): number[] => t.columns.flatMap((c, i) => (c.unit === "fraction" ? [i] : []));

/** What a row is called: the kernel, and where it was counted as far as that tells it from others. */
export function kernelNames(t: Table): string[] {
  const at = (id: string): number => t.columns.findIndex((c) => c.id === id);
  const places = ["kernel", "host", "device", "sample"].map(at).filter((i) => i >= 0);
  const telling = places.filter((i, k) => k === 0 || new Set(t.rows.map((r) => String(r[i]))).size > 1);
  return t.rows.map((r) => telling.map((i, k) => (k === 0 ? String(r[i] ?? "no name") : `${t.columns[i]!.label.toLowerCase()} ${String(r[i])}`)).join(", "));
}

export function kernelSeries(t: Table): Series {
  const units = unitsOf(t);
  const names = kernelNames(t);
  return {
    id: "kernel_units", title: "Units by kernels", x: { label: "kernel", unit: "", type: "text" }, y: { label: "Busy", unit: "fraction" }, kind: "heat",
    names: units.map((i) => t.columns[i]!.label),
    points: t.rows.map((r, k) => [names[k]!, ...units.map((i) => (Number.isNaN(asNumber(r[i])) ? null : Math.min(1, asNumber(r[i]))))]),
    total_points: t.rows.length, reduced: false,
  };
}

const column = (id: string, label: string, definition: string): Column => ({ id, label, unit: "fraction", type: "number", definition });

/** Unit by unit, and the time: what the one used, what the other, and the difference. */
export function comparison(t: Table, one: number, other: number): Table {
  const names = kernelNames(t);
  const [a, b] = [t.rows[one]!, t.rows[other]!];
  const less = (x: Cell | undefined, y: Cell | undefined): number | null => {
    const d = asNumber(y) - asNumber(x);
    return Number.isNaN(d) ? null : d;
  };
  const time = t.columns.findIndex((c) => c.id === "time");
  const took = time < 0 ? "" : `${names[one]} took ${show(a[time], t.columns[time]!.unit)}, ${names[other]} ${show(b[time], t.columns[time]!.unit)}.`;
  const rows = unitsOf(t).map((i): Cell[] => [t.columns[i]!.label, a[i] ?? null, b[i] ?? null, less(a[i], b[i])]);
  return {
    id: "kernel_comparison", title: "Two kernels", note: took, rows, total_rows: rows.length, rest: null, sort: null,
    columns: [{ id: "name", label: "Unit", unit: "", type: "text" }, column("one", "First", names[one]!), column("other", "Second", names[other]!), column("difference", "Second less first", "in points of the unit's peak")],
  };
}
