// What is where in the picture of a timeline: rectangles under a point, the boxes of events, arrows between them.
import { big } from "../../api/json";
import { idAt, indexOfId, type Lane } from "../../api/window";
import type { Scene, SceneBox, SceneRow } from "../../draw/scene";
import { hitLane } from "../../layout/rects";
import { laneAt, laneTop, type Row } from "../../layout/rows";
import type { Name } from "../../model/names";
import type { Slab } from "../../model/slabs";
import { timeAt } from "../../model/view";
import type { Mark } from "./chosen";
import { valueAt } from "./curves";
import type { Trace } from "./trace";

/** A rectangle under the pointer. */
export interface Hover {
  mark: Mark;
  name: Name;
  count: number;
  busy: number;
  row: Row;
}

/** The value of a curve at a time. */
export interface CurvePoint {
  row: Row;
  at: bigint;
  v: number;
}

/** The row at a height of what is in sight. */
export function rowAt(t: Trace, y: number): Row | undefined {
  const at = y + t.scrollTop.peek();
  const rows = t.inSight.peek(); // pinned ones lie over the others and come last
  for (let i = rows.length - 1; i >= 0; i--) if (at >= rows[i]!.y && at < rows[i]!.y + rows[i]!.h) return rows[i];
  return undefined;
}

/** Where a line is drawn now. */
function rowOf(t: Trace, line: number): Row | undefined {
  const row = t.rows.peek().byLine.get(line);
  return row?.pinned ? { ...row, y: row.y + t.scrollTop.peek() } : row;
}

/* --- rectangles, of what is loaded --- */

export function hitAt(t: Trace, x: number, y: number): Hover | null {
  const { width } = t.size.peek();
  const v = t.view.peek();
  const row = rowAt(t, y);
  if (!row?.line || row.curve) return null;
  const slab = t.slabOf(row.line.line);
  const lane = slab?.lanes.find((l) => l.lane === laneAt(row, y + t.scrollTop.peek()));
  if (!slab || !lane) return null;
  const at = (x / width) * v.span + Number(v.t0 - slab.t0);
  const i = hitLane(lane, at, (3 / width) * v.span);
  return i < 0 ? null : hoverOf(row, slab, lane, i);
}

function rectOf(t: Trace, line: number, id: string): Hover | null {
  const row = t.rows.peek().byLine.get(line);
  if (!row) return null;
  for (const slab of t.slabs.all(line))
    for (const lane of slab.lanes) {
      const i = indexOfId(lane, id);
      if (i >= 0) return hoverOf(row, slab, lane, i);
    }
  return null;
}

/** The first rectangle at or after the left edge, on the first row in sight that has one. */
export function firstInView(t: Trace): Hover | null {
  const v = t.view.peek();
  for (const row of t.inSight.peek()) {
    const found = row.line && nearest(t, row, v.t0 > t.session.peek().t0 ? v.t0 : t.session.peek().t0);
    if (found) return found;
  }
  return null;
}

export function nearest(t: Trace, row: Row, at: bigint): Hover | null {
  const slab = row.line && !row.curve && t.slabOf(row.line.line);
  const lane = slab ? slab.lanes[0] : undefined;
  if (!slab || !lane) return null;
  const i = hitLane(lane, Number(at - slab.t0), Infinity);
  return i < 0 ? null : hoverOf(row, slab, lane, i);
}

function hoverOf(row: Row, slab: Slab, lane: Lane, i: number): Hover {
  const begin = slab.t0 + BigInt(Math.round(lane.begin[i]!));
  return {
    mark: {
      id: idAt(lane, i), line: row.line!.line, lane: lane.lane, begin, end: begin + BigInt(Math.round(lane.duration[i]!)),
    },
    name: slab.names[lane.name[i]!]!,
    count: lane.count?.[i] ?? 1,
    busy: lane.busyOf?.[i] ?? lane.duration[i]!,
    row,
  };
}

/** The time at x, or that of an event's end close to it. */
export function snap(t: Trace, x: number, y: number): bigint {
  const { width } = t.size.peek();
  const v = t.view.peek();
  const at = timeAt(v, x, width);
  const hit = hitAt(t, x, y);
  if (!hit || hit.count > 1) return at;
  const near = (v.span / Math.max(1, width)) * 6;
  const far = (a: bigint): number => Math.abs(Number(a - at));
  const edge = far(hit.mark.begin) < far(hit.mark.end) ? hit.mark.begin : hit.mark.end;
  return far(edge) <= near ? edge : at;
}

/** The curve's value under the pointer. */
export function pointAt(t: Trace, x: number, y: number): CurvePoint | null {
  const row = rowAt(t, y);
  const s = row?.curve && t.curves.series(row.line!.line, row.curve.stat, row.curve.series);
  if (!row || !s) return null;
  const i = valueAt(s, timeAt(t.view.peek(), x, t.size.peek().width));
  return i < 0 ? null : { row, at: s.t0 + BigInt(s.t[i]!), v: s.v[i]! };
}

/* --- what is drawn --- */

/** The rows in sight, each with the best there is to draw in it. */
export function sceneRows(t: Trace): SceneRow[] {
  return t.inSight.peek().map((r) => ({
    y: r.y, h: r.h, laneH: r.laneH, line: r.line?.line ?? -1, pinned: !!r.pinned,
    slab: (r.line && !r.curve && t.slabOf(r.line.line)?.id) || 0,
    curve: r.curve && t.curves.series(r.line!.line, r.curve.stat, r.curve.series),
  }));
}

/** Where an event is drawn, whether or not it is in a slab. */
export function boxOf(t: Trace, m: Mark | null): SceneBox | null {
  const row = m && rowOf(t, m.line);
  return row ? { begin: m.begin, end: m.end, y: laneTop(row, m.lane), h: row.laneH - 1 } : null;
}

/** Flows of the chosen event, as far as their rows are shown. */
export function arrows(t: Trace): Scene["arrows"] {
  const m = t.event.mark.peek();
  const own = boxOf(t, m);
  if (!m || !own) return [];
  const here = own.y + own.h / 2;
  return (t.event.details.peek()?.flows ?? []).flatMap((f) => {
    const row = rowOf(t, f.line);
    if (!row) return [];
    const id = f.ids[0];
    const lane = (id !== undefined && rectOf(t, f.line, String(id))?.mark.lane) || 0;
    const there = laneTop(row, lane) + (row.laneH - 1) / 2;
    const at = big(f.begin_ps);
    const mine = at < m.begin || f.direction === "in" ? m.begin : at > m.end ? m.end : at;
    return f.direction === "out"
      ? { from: mine, fromY: here, to: at, toY: there }
      : { from: at, fromY: there, to: mine, toY: here };
  });
}
