// What reports say about times of the timeline: suggestions that were seen somewhere, and how each step went.
import type { Cell, Report, Table } from "../api/report";
import { big } from "../api/json";
import { asNumber } from "./units";
import type { Range } from "./view";

export interface Tip {
  rule: string;
  priority: string;
  finding: string;
  share: number; // of the time; NaN: not measured
  place: (Range & { host: string; plane: string }) | null; // where it is seen best
}

export interface Step extends Range {
  name: string;
  host: string; // of the core that worked longest: its step less what it waited in it
  plane: string;
  apart: number; // 0 … 1: how much less the step took on the core where it was shortest; of all cores
  times: number; // as long as the middle one of all steps
}

/** The page of the suggestions, at one of them. */
export const findingId = (rule: string): string => `finding-${rule}`;
export const findingHref = (page: string, rule: string): string => `${page}#${encodeURIComponent(findingId(rule))}`;

type Get = (row: readonly Cell[], id: string) => Cell | undefined;

function getter(t: Table): Get {
  const at = new Map(t.columns.map((c, i) => [c.id, i]));
  return (row, id) => (at.has(id) ? row[at.get(id)!] : undefined);
}

const text = (v: Cell | undefined): string => (v === null || v === undefined ? "" : String(v));
const whole = (v: Cell | undefined): bigint | null => (typeof v === "bigint" ? v : typeof v === "number" ? big(Math.round(v)) : null);

/** An instant is made as wide as can be seen. */
function rangeOf(begin: bigint | null, length: bigint | null): Range | null {
  return begin === null ? null : { t0: begin, t1: begin + (length && length > 0n ? length : 1n) };
}

export function tipsOf(r: Report): Tip[] {
  const t = r.tables.find((x) => x.id === "findings");
  if (!t) return [];
  const get = getter(t);
  return t.rows.map((row) => {
    const range = rangeOf(whole(get(row, "first_begin_ps")), whole(get(row, "first_duration_ps")));
    const host = text(get(row, "first_host"));
    return {
      rule: text(get(row, "rule")), priority: text(get(row, "priority")), finding: text(get(row, "finding")), share: asNumber(get(row, "share")),
      place: range && host ? { ...range, host, plane: text(get(row, "first_plane")) } : null,
    };
  });
}

/** In order of time. */
export function stepsOf(r: Report): Step[] {
  const t = r.tables.find((x) => x.id === "steps");
  if (!t) return [];
  const get = getter(t);
  const lengths = t.rows.filter((row) => get(row, "whole") !== false).map((row) => asNumber(get(row, "longest"))).filter((x) => x > 0).sort((a, b) => a - b);
  const middle = lengths[lengths.length >> 1] ?? 1;
  return t.rows
    .flatMap((row): Step[] => {
      const longest = asNumber(get(row, "longest"));
      const range = rangeOf(whole(get(row, "first_begin_ps")), whole(get(row, "longest")));
      if (!range || !(longest > 0) || get(row, "whole") === false) return [];
      const apart = Math.max(0, (longest - asNumber(get(row, "shortest"))) / longest) || 0;
      return [{ ...range, name: text(get(row, "name")) || text(get(row, "step")), host: text(get(row, "host")), plane: text(get(row, "first_plane")), apart, times: longest / middle }];
    })
    .sort((a, b) => (a.t0 < b.t0 ? -1 : a.t0 > b.t0 ? 1 : 0));
}

/** Those of a range, of steps in order of time: not more than `most`, each the longest of its neighbours. */
export function stepsIn(steps: readonly Step[], r: Range, most: number): readonly Step[] {
  let from = firstAfter(steps, r.t0);
  // Steps follow each other, but for those of other cores: the one before may reach into the range.
  while (from > 0 && steps[from - 1]!.t1 > r.t0) from--;
  const to = firstAfter(steps, r.t1);
  if (to - from <= most) return steps.slice(from, to);
  const out: Step[] = [];
  for (let i = 0; i < most; i++) {
    const part = steps.slice(from + Math.floor(((to - from) * i) / most), from + Math.floor(((to - from) * (i + 1)) / most));
    out.push(part.reduce((a, b) => (b.times > a.times ? b : a)));
  }
  return out;
}

function firstAfter(steps: readonly Step[], t: bigint): number {
  let [lo, hi] = [0, steps.length];
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (steps[mid]!.t0 > t) hi = mid;
    else lo = mid + 1;
  }
  return lo;
}

/** Left edges, ascending, of marks that are to stand beside each other in the width there is: pushed to the right, and back from the right edge. */
export function spread(at: readonly number[], size: number, gap: number, width: number): number[] {
  const pitch = Math.min(size + gap, at.length > 1 ? Math.max(0, width - size) / (at.length - 1) : size); // more than fit cover each other
  const out: number[] = [];
  for (const x of at) out.push(Math.max(0, x, out.length ? out[out.length - 1]! + pitch : 0));
  for (let i = out.length - 1, most = Math.max(0, width - size); i >= 0; i--, most = out[i + 1]! - pitch) out[i] = Math.min(out[i]!, most);
  return out;
}
