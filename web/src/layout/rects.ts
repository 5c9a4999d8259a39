// Rectangles of one lane in device pixels: numbers in, spans out.

export interface LaneTimes {
  begin: ArrayLike<number>;
  duration: ArrayLike<number>;
}

/** First rectangle that ends after t. Rectangles of a lane do not overlap. */
export function firstAfter(lane: LaneTimes, t: number): number {
  let low = 0;
  let high = lane.begin.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane.begin[middle]! + lane.duration[middle]! >= t) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Grows as needed, reused from frame to frame. */
export class Spans {
  n = 0;
  x0 = new Int32Array(1024);
  x1 = new Int32Array(1024);
  index = new Uint32Array(1024);

  push(x0: number, x1: number, index: number): void {
    if (this.n === this.x0.length) this.grow();
    this.x0[this.n] = x0;
    this.x1[this.n] = x1;
    this.index[this.n++] = index;
  }

  private grow(): void {
    const bigger = <T extends Int32Array | Uint32Array>(old: T, next: T): T => (next.set(old), next);
    const size = this.x0.length * 2;
    this.x0 = bigger(this.x0, new Int32Array(size));
    this.x1 = bigger(this.x1, new Int32Array(size));
    this.index = bigger(this.index, new Uint32Array(size));
  }
}

/**
 * Spans in [0, width) of the rectangles; offset is the lane's time 0 in the view. Each is at least
 * one pixel wide; what falls whole into a pixel that is taken already is not drawn twice.
 */
export function layoutLane(lane: LaneTimes, offset: number, pxPerPs: number, width: number, out: Spans): void {
  out.n = 0;
  const { begin, duration } = lane;
  const end = width / pxPerPs - offset;
  let taken = 0;
  for (let i = firstAfter(lane, -offset); i < begin.length; i++) {
    const b = begin[i]!;
    if (b >= end) break;
    let x0 = Math.floor((b + offset) * pxPerPs);
    const x1 = Math.min(width, Math.max(x0 + 1, Math.floor((b + duration[i]! + offset) * pxPerPs)));
    if (x0 < taken) x0 = taken;
    if (x1 <= x0) continue;
    out.push(x0, x1, i);
    taken = x1;
  }
}

/** Rectangle at time t, or the nearest within slop; -1: none. */
export function hitLane(lane: LaneTimes, t: number, slop: number): number {
  const i = firstAfter(lane, t);
  let best = -1;
  let distance = slop;
  for (const k of [i, i - 1]) {
    if (k < 0 || k >= lane.begin.length) continue;
    const b = lane.begin[k]!;
    const d = Math.max(b - t, t - (b + lane.duration[k]!), 0);
    if (d <= distance) [best, distance] = [k, d];
    if (d === 0) break;
  }
  return best;
}
