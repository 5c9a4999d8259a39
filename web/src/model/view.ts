// The part of the session that the timeline shows. Integers in ps, so that what the URL says is
// what was seen; t0 is a bigint because a double loses picoseconds after 2.5 hours.

export interface View {
  t0: bigint;
  span: number;
}

export interface Range {
  t0: bigint;
  t1: bigint;
}

const MIN_SPAN = 200;

const toBig = (x: number): bigint => BigInt(Math.round(x));

export function endOf(v: View): bigint {
  return v.t0 + toBig(v.span);
}

/** The same, so much later. */
export function shiftView(v: View, by: bigint): View {
  return by === 0n ? v : { t0: v.t0 + by, span: v.span };
}

export function shiftRange(r: Range, by: bigint): Range {
  return { t0: r.t0 + by, t1: r.t1 + by };
}

export function unionOf(a: Range, b: Range): Range {
  return { t0: a.t0 < b.t0 ? a.t0 : b.t0, t1: a.t1 > b.t1 ? a.t1 : b.t1 };
}

export function sameView(a: View, b: View): boolean {
  return a.t0 === b.t0 && a.span === b.span;
}

/** Everything, with a little air at both sides. */
export function wholeView(b: Range): View {
  const span = Math.max(Number(b.t1 - b.t0), MIN_SPAN);
  const air = Math.ceil(span * 0.01);
  return { t0: b.t0 - toBig(air), span: span + 2 * air };
}

/** Keeps some of the session in sight and the zoom within reason. */
export function clampView(v: View, b: Range): View {
  const whole = wholeView(b);
  const span = Math.min(Math.max(Math.round(v.span), MIN_SPAN), whole.span);
  if (span === whole.span) return whole;
  const low = b.t0 - toBig(span / 2);
  const high = b.t1 - toBig(span / 2);
  const t0 = v.t0 < low ? low : v.t0 > high ? high : v.t0;
  return { t0, span };
}

/** factor < 1 zooms in; at: 0 … 1 is the place that stays where it is. */
export function zoomView(v: View, factor: number, at: number, b: Range): View {
  const span = Math.min(Math.max(Math.round(v.span * factor), MIN_SPAN), wholeView(b).span);
  return clampView({ t0: v.t0 + toBig((v.span - span) * at), span }, b);
}

export function panView(v: View, share: number, b: Range): View {
  return clampView({ t0: v.t0 + toBig(v.span * share), span: v.span }, b);
}

/** A range in the middle with air around it. */
export function fitView(r: Range, b: Range, air = 0.1): View {
  const span = Math.max(Number(r.t1 - r.t0), 1) * (1 + 2 * air);
  const fit = Math.max(span, MIN_SPAN);
  const middle = r.t0 + (r.t1 - r.t0) / 2n;
  return clampView({ t0: middle - toBig(fit / 2), span: fit }, b);
}

/** The same zoom, moved only if the range would not be seen; widened if it is too small to see. */
export function revealView(v: View, r: Range, b: Range, width: number): View {
  const length = Number(r.t1 - r.t0);
  const pixels = (length / v.span) * width;
  if (pixels < 3 && length > 0) return fitView(r, b, 4);
  if (r.t0 < endOf(v) && r.t1 > v.t0 && (r.t0 >= v.t0 || r.t1 <= endOf(v) || length > v.span)) return v;
  if (length > v.span) return clampView({ t0: r.t0 - toBig(v.span * 0.1), span: v.span }, b);
  const middle = r.t0 + (r.t1 - r.t0) / 2n;
  return clampView({ t0: middle - toBig(v.span / 2), span: v.span }, b);
}

/** Pixels from the left of the view. */
export function xOf(v: View, t: bigint, width: number): number {
  return (Number(t - v.t0) / v.span) * width;
}

export function timeAt(v: View, x: number, width: number): bigint {
  return v.t0 + toBig((x / width) * v.span);
}

const DEEPEST = 6;

/** Ranges that were zoomed into, each inside of the one before it: where one came from. */
export function deeper(trail: readonly View[], v: View): View[] {
  const inside = (a: View, b: View): boolean => a.t0 >= b.t0 && endOf(a) <= endOf(b) && !sameView(a, b);
  const kept = trail.filter((x) => inside(v, x));
  return [...kept.slice(-(DEEPEST - 1)), v];
}
