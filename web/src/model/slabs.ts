// What the server has told about each line, to draw from: per line a few windows at several
// zooms. Bounded in bytes; the least recently drawn goes first.
import { laneBytes, type Lane, type Window } from "../api/window";
import type { Name } from "./names";
import { endOf, type Range, type View } from "./view";

export interface Slab extends Range {
  id: number; // of all slabs, from 1
  psPerPx: number; // as answered
  asked: number; // ps a pixel, as asked for: asking the same again would not help
  names: Name[];
  lanes: Lane[];
  exact: boolean; // every event has its rectangle: good for any zoom
  provisional: boolean; // the line was not loaded yet
  bytes: number;
  used: number; // clock of the last use
}

/** A little slack, so that a view that is a rounding away does not ask again. */
const SLACK = 1.02;

/** Does s hold all that the view can show of something that lies within b? */
export function covers(s: Range, v: View, b: Range): boolean {
  const from = v.t0 > b.t0 ? v.t0 : b.t0;
  const end = endOf(v);
  const to = end < b.t1 ? end : b.t1;
  return from >= to || (s.t0 <= from && s.t1 >= to);
}

export function fine(s: Slab, psPerPx: number): boolean {
  return s.exact || s.asked <= psPerPx * SLACK;
}

/** Share of the view that the slab shows. */
function share(s: Range, v: View): number {
  const from = Math.max(0, Number(s.t0 - v.t0));
  const to = Math.min(v.span, Number(s.t1 - v.t0));
  return Math.max(0, to - from) / v.span;
}

export class Slabs {
  private readonly byLine = new Map<number, Slab[]>();
  private readonly byId = new Map<number, Slab>();
  private clock = 0;
  private made = 0;
  private total = 0;

  constructor(private readonly limit: number) {}

  get bytes(): number {
    return this.total;
  }

  clear(): void {
    this.byLine.clear();
    this.byId.clear();
    this.total = 0;
  }

  /** Takes in an answer for these lines; lines without rectangles get an empty slab. */
  add(w: Window, lines: readonly number[], namesOf: (line: number) => Name[], settled: (line: number) => boolean): void {
    const grouped = new Map<number, Lane[]>();
    for (const lane of w.lanes) {
      const lanes = grouped.get(lane.line);
      if (lanes) lanes.push(lane);
      else grouped.set(lane.line, [lane]);
    }
    const asked = Number(w.t1 - w.t0) / Math.max(1, w.px);
    const psPerPx = asked * Math.max(1, w.mergePx);
    for (const line of lines) {
      const lanes = grouped.get(line) ?? [];
      this.put(line, {
        id: ++this.made,
        t0: w.t0,
        t1: w.t1,
        psPerPx,
        asked,
        lanes,
        names: namesOf(line),
        exact: lanes.every((l) => l.hidden === 0),
        provisional: w.loading && !settled(line),
        bytes: lanes.reduce((sum, l) => sum + laneBytes(l), 100),
        used: ++this.clock,
      });
    }
    this.trim();
  }

  private put(line: number, slab: Slab): void {
    const old = this.byLine.get(line) ?? [];
    // What the new one shows at least as well is of no use any more.
    const kept = old.filter((s) => {
      const worse = slab.t0 <= s.t0 && slab.t1 >= s.t1 && (slab.exact || (!s.exact && slab.psPerPx <= s.psPerPx));
      const gone = worse || s.provisional;
      if (gone) this.forget(s);
      return !gone;
    });
    kept.push(slab);
    this.total += slab.bytes;
    this.byLine.set(line, kept);
    this.byId.set(slab.id, slab);
  }

  private forget(s: Slab): void {
    this.total -= s.bytes;
    this.byId.delete(s.id);
  }

  get(id: number): Slab | undefined {
    return this.byId.get(id);
  }

  /** The best to draw this view from: covering and fine enough, else as much and as fine as there is. */
  best(line: number, v: View, psPerPx: number): Slab | null {
    let best: Slab | null = null;
    let bestScore = 0;
    for (const s of this.byLine.get(line) ?? []) {
      const seen = share(s, v);
      if (seen === 0) continue;
      const sharp = fine(s, psPerPx) ? 1 : psPerPx / s.psPerPx;
      const score = seen * 4 + sharp + (s.exact ? 0.5 : 0);
      if (score > bestScore) [best, bestScore] = [s, score];
    }
    if (best) best.used = ++this.clock;
    return best;
  }

  /** Is there one that needs no asking? Nothing of the line lies outside b. */
  has(line: number, v: View, psPerPx: number, b: Range, acceptProvisional: boolean): boolean {
    if (endOf(v) <= b.t0 || v.t0 >= b.t1) return true;
    return (this.byLine.get(line) ?? []).some(
      (s) => (acceptProvisional || !s.provisional) && covers(s, v, b) && fine(s, psPerPx),
    );
  }

  all(line: number): readonly Slab[] {
    return this.byLine.get(line) ?? [];
  }

  private trim(): void {
    if (this.total <= this.limit) return;
    const everything = [...this.byLine].flatMap(([line, slabs]) => slabs.map((slab) => ({ line, slab })));
    everything.sort((a, b) => a.slab.used - b.slab.used);
    for (const { line, slab } of everything) {
      if (this.total <= this.limit * 0.8) break;
      this.forget(slab);
      this.byLine.set(line, this.byLine.get(line)!.filter((s) => s !== slab));
    }
  }
}
