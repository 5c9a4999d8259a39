// Where each plane and line is drawn: numbers in, rows out. y counts from the top of all rows.
import type { Line, Plane } from "../api/types";
import { px } from "./unit";

export const headingHeight = (): number => px(26);
export const laneHeight = (): number => px(17); // a lane with its gap
export const FLAT_LANE = 5;
export const moreHeight = (): number => px(34); // room for what follows the last row
const PAD = 5; // between lines
const flatLeast = (): number => px(22);
const curveHeight = (): number => px(44);
const emptyHeight = (): number => px(16); // a line without events: there, but not in the way

export interface Row {
  y: number;
  h: number;
  plane: Plane;
  line: Line | null; // null: the plane's heading
  folded: boolean; // of a heading
  laneH: number;
  flat: boolean;
  curve?: CurveRow; // of the line's events, in place of themselves
  pinned?: boolean; // stays above the others; y counts from the top of what is in sight
}

export interface CurveRow {
  stat: string;
  series: number;
  name: string; // of the series; "": it is the only one
}

export type CurveRows = ReadonlyMap<number, readonly CurveRow[]>; // by line

export interface Rows {
  rows: Row[];
  height: number;
  byLine: Map<number, Row>;
  pinned: Row[];
  pinnedHeight: number; // the other rows begin below
  hidden: number; // lines that are there, but not to be shown
}

/** Planes that start folded: nothing to see in them. */
export function foldedByDefault(p: Plane): boolean {
  return p.events === 0 && p.state !== "waiting" && p.state !== "loading";
}

export function isFolded(p: Plane, toggled: ReadonlySet<number>): boolean {
  return foldedByDefault(p) !== toggled.has(p.plane);
}

function lineRow(plane: Plane, line: Line, y: number, flat: boolean): Row {
  if (line.events === 0) return { y, h: emptyHeight(), plane, line, folded: false, laneH: laneHeight(), flat: false };
  const lanes = Math.max(1, line.lanes);
  const laneH = flat && lanes > 1 ? FLAT_LANE : laneHeight();
  const h = Math.max(lanes * laneH + PAD, flatLeast());
  return { y, h, plane, line, folded: false, laneH, flat };
}

/** A line's row, and below it its curves. */
function rowsOf(plane: Plane, line: Line, y: number, flat: boolean, curves: readonly CurveRow[] = []): Row[] {
  const rows = [lineRow(plane, line, y, flat)];
  let below = y + rows[0]!.h;
  for (const curve of curves) {
    rows.push({ y: below, h: curveHeight(), plane, line, folded: false, laneH: curveHeight(), flat: false, curve });
    below += curveHeight();
  }
  return rows;
}

/** Pinned lines come first, in their order, and are left out below. */
function layoutPinned(planes: readonly Plane[], flat: ReadonlySet<number>, pins: readonly number[], curves: CurveRows): Row[] {
  const places = new Map<number, { plane: Plane; line: Line }>();
  if (pins.length) for (const plane of planes) for (const line of plane.lines) places.set(line.line, { plane, line });
  const out: Row[] = [];
  let y = 0;
  for (const pin of pins) {
    const at = places.get(pin);
    if (!at) continue;
    for (const r of rowsOf(at.plane, at.line, y, flat.has(pin), curves.get(pin))) {
      out.push({ ...r, pinned: true });
      y += r.h;
    }
  }
  return out;
}

const none: ReadonlySet<number> = new Set();
const noCurves: CurveRows = new Map();

export function layoutRows(
  planes: readonly Plane[], toggled: ReadonlySet<number>, flat: ReadonlySet<number>,
  pins: readonly number[] = [], hide: ReadonlySet<number> = none,
  curves: CurveRows = noCurves,
): Rows {
  const rows: Row[] = [];
  const pinned = layoutPinned(planes, flat, pins, curves);
  const byLine = new Map(pinned.filter((r) => !r.curve).map((r) => [r.line!.line, r]));
  const pinnedHeight = pinned.reduce((h, r) => h + r.h, 0);
  let y = pinnedHeight;
  let hidden = 0;
  for (const plane of planes) {
    const folded = isFolded(plane, toggled);
    rows.push({ y, h: headingHeight(), plane, line: null, folded, laneH: 0, flat: false });
    y += headingHeight();
    if (folded) continue;
    for (const line of plane.lines) {
      if (byLine.has(line.line)) continue;
      if (hide.has(line.line)) {
        hidden++;
        continue;
      }
      const own = rowsOf(plane, line, y, flat.has(line.line), curves.get(line.line));
      rows.push(...own);
      byLine.set(line.line, own[0]!);
      for (const r of own) y += r.h;
    }
  }
  return { rows, height: y, byLine, pinned, pinnedHeight, hidden };
}

/** Index of the row that holds y, clamped to what there is. */
export function rowIndexAt(rows: readonly Row[], y: number): number {
  let low = 0;
  let high = rows.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (rows[middle]!.y <= y) low = middle;
    else high = middle - 1;
  }
  return Math.max(0, low);
}

export function visibleRows(rows: readonly Row[], top: number, height: number): Row[] {
  const out: Row[] = [];
  for (let i = rowIndexAt(rows, top); i < rows.length && rows[i]!.y < top + height; i++) out.push(rows[i]!);
  return out;
}

/** Lines between two heights, for an area selection. */
export function linesBetween(rows: readonly Row[], y0: number, y1: number): number[] {
  const [low, high] = y0 < y1 ? [y0, y1] : [y1, y0];
  return visibleRows(rows, low, high - low + 1).flatMap((r) => (r.line && r.y + r.h > low ? [r.line.line] : []));
}

export function laneTop(row: Row, lane: number): number {
  return row.y + 2 + lane * row.laneH;
}

export function laneAt(row: Row, y: number): number {
  return Math.floor((y - row.y - 2) / row.laneH);
}
