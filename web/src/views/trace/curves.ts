// Values of events as curves below their rows: counters, bytes in use, FLOPs.
import { signal } from "@preact/signals";
import { asProblem, isAbort, type Api } from "../../api/client";
import { big } from "../../api/json";
import type { CurveAnswer } from "../../api/types";
import type { SceneCurve } from "../../draw/scene";
import { bytes, count, duration } from "../../model/format";
import { si } from "../../model/units";
import type { Curve } from "../../model/url";
import { covers } from "../../model/slabs";
import { endOf, type Range, type View } from "../../model/view";

const MAX_PX = 4096;
const SLACK = 1.05;

export interface Series extends SceneCurve {
  name: string;
}

interface Data extends Range {
  psPerPx: number;
  exact: boolean; // all values are there
  some: string; // says when not all events were looked at
  series: Series[];
}

export function curveKey(c: Curve): string {
  return `${c.line}~${c.stat}`;
}

/** A value with what its name says of its unit. */
export function curveValue(stat: string, v: number): string {
  if (/_ps$/.test(stat)) return duration(Math.round(v));
  if (/bytes|memory_size|allocation_size/.test(stat)) return v < 0 ? `-${bytes(-v)}` : bytes(v);
  if (/flops/.test(stat)) return si(v, "FLOP");
  return Number.isInteger(v) && Math.abs(v) < 1e7 ? count(v) : si(v, "");
}

/** Where the scale begins: at 0, unless that would hide what changes. */
export function scaleOf(low: number, high: number): { from: number; to: number } {
  if (low === high) return low === 0 ? { from: 0, to: 1 } : { from: Math.min(0, low), to: Math.max(0, low) };
  if (low >= 0 && low < 0.6 * high) return { from: 0, to: high };
  const air = (high - low) * 0.1;
  return { from: low - air, to: high };
}

/** Index of the value that holds at t; -1: none yet. */
export function valueAt(s: SceneCurve, t: bigint): number {
  const x = Number(t - s.t0);
  let low = -1;
  let high = s.t.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (s.t[middle]! <= x) low = middle;
    else high = middle - 1;
  }
  return low;
}

export class Curves {
  readonly list = signal<readonly Curve[]>([]);
  readonly version = signal(0); // counts answers
  /** What can be drawn of a line, once that was asked for. */
  readonly offered = signal<{ line: number; stats: string[]; problem: string } | null>(null);
  private readonly data = new Map<string, Data>();
  private readonly flights = new Map<string, AbortController>();

  constructor(private readonly api: Api, private readonly who: { run: string; host: string }) {}

  stop(): void {
    for (const f of this.flights.values()) f.abort();
    this.flights.clear();
  }

  set(list: readonly Curve[]): void {
    this.list.value = list.slice(0, 32);
    for (const key of this.data.keys()) if (!list.some((c) => curveKey(c) === key)) this.data.delete(key);
  }

  has(c: Curve): boolean {
    return this.list.value.some((x) => curveKey(x) === curveKey(c));
  }

  toggle(c: Curve): void {
    this.set(this.has(c) ? this.list.peek().filter((x) => curveKey(x) !== curveKey(c)) : [...this.list.peek(), c]);
  }

  /** Names of the curves of each line; "" where it has none of its own. */
  rows(): Map<number, { stat: string; series: number; name: string }[]> {
    void this.version.value;
    const out = new Map<number, { stat: string; series: number; name: string }[]>();
    for (const c of this.list.value) {
      const names = this.data.get(curveKey(c))?.series.map((s) => s.name) ?? [""];
      const of = out.get(c.line) ?? [];
      (names.length ? names : [""]).forEach((name, series) => of.push({ stat: c.stat, series, name }));
      out.set(c.line, of);
    }
    return out;
  }

  series(line: number, stat: string, i: number): Series | undefined {
    return this.data.get(curveKey({ line, stat }))?.series[i];
  }

  note(line: number, stat: string): string {
    return this.data.get(curveKey({ line, stat }))?.some ?? "";
  }

  /** Sees to it that these curves can be drawn. */
  want(curves: readonly Curve[], view: View, width: number, session: Range): void {
    for (const c of curves) {
      const key = curveKey(c);
      const d = this.data.get(key);
      const fine = view.span / Math.max(1, width);
      if ((d && covers(d, view, session) && (d.exact || d.psPerPx <= fine * SLACK)) || this.flights.has(key)) continue;
      void this.ask(c, view, width, session);
    }
  }

  private async ask(c: Curve, view: View, width: number, session: Range): Promise<void> {
    const key = curveKey(c);
    const margin = BigInt(Math.round(view.span / 2));
    const t0 = view.t0 - margin > session.t0 ? view.t0 - margin : session.t0;
    const t1 = endOf(view) + margin < session.t1 ? endOf(view) + margin : session.t1;
    if (t0 >= t1) return;
    const px = Math.max(1, Math.min(MAX_PX, Math.ceil((width * Number(t1 - t0)) / view.span)));
    const flight = new AbortController();
    this.flights.set(key, flight);
    try {
      const got = await this.api.json<CurveAnswer>("curve", { ...this.who, rows: c.line, stat: c.stat, t0, t1, px }, flight.signal);
      if (this.list.peek().some((x) => curveKey(x) === key)) this.data.set(key, this.take(key, got, t0, t1, px));
    } catch (e) {
      if (isAbort(e)) return;
      this.data.set(key, { t0, t1, psPerPx: 0, exact: true, some: asProblem(e).message, series: [] });
    } finally {
      this.flights.delete(key);
    }
    this.version.value++;
  }

  private take(key: string, got: CurveAnswer, t0: bigint, t1: bigint, px: number): Data {
    const old = this.data.get(key)?.series ?? [];
    const series = got.series.map((s): Series => {
      // The scale stays while the view moves: it only ever grows.
      const before = old.find((o) => o.name === s.name);
      const low = Math.min(s.min, before?.low ?? Infinity);
      const high = Math.max(s.max, before?.high ?? -Infinity);
      return {
        name: s.name, t0, t: Float64Array.from(s.t, (t) => Number(big(t) - t0)), v: Float64Array.from(s.v, Number), low, high, ...scaleOf(low, high),
      };
    });
    const kept = old.filter((o) => !series.some((s) => s.name === o.name)).map((o) => ({ ...o, t: NOTHING, v: NOTHING }));
    return {
      t0, t1, psPerPx: Number(t1 - t0) / px,
      exact: got.looked === got.events && got.series.every((s) => s.t.length === s.values),
      some: [
        got.looked < got.events ? `of ${count(got.events)} events ${count(got.looked)} were looked at` : "",
        (got.series_total ?? 0) > got.series.length ? `${count(got.series.length)} of ${count(got.series_total ?? 0)} counters` : "",
        got.series.length === 0 && kept.length === 0 ? "no event in view has this value" : "",
      ].filter(Boolean).join("; "),
      series: [...series, ...kept],
    };
  }

  /** Asks which values the events of a line have. */
  async offer(line: number, view: View): Promise<void> {
    this.offered.value = null;
    const of = (stats: string[], problem: string): void => void (this.offered.value = { line, stats, problem });
    try {
      let got = await this.api.json<CurveAnswer>("curve", { ...this.who, rows: line, t0: view.t0, t1: endOf(view) });
      if (!got.stats?.length) got = await this.api.json<CurveAnswer>("curve", { ...this.who, rows: line });
      of((got.stats ?? []).filter((s) => s !== "" && !/^_|_id$|^device_offset_ps$/.test(s)), "");
    } catch (e) {
      of([], asProblem(e).message);
    }
  }
}

const NOTHING = new Float64Array(0);
