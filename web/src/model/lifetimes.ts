// Where buffers stand in the picture of their lifetimes.
export interface Buffer {
  key: string;
  name: string;
  begin: number;
  end: number;
  size: number;
  kind: string;
  place: { allocation: number; offset: number } | null; // in the program's memory, where that is known
  facts: [string, string][];
}

export interface Placed {
  b: Buffer;
  base: number;
}

const whole = (b: Buffer, last: number): boolean => b.begin <= 0 && b.end >= last;

/** What lives as long as the program at the bottom, then the largest: all are alive at the peak, so
 * that no two share a height. */
export function bySize(buffers: readonly Buffer[], last: number): Placed[] {
  let base = 0;
  return [...buffers].sort((a, b) => Number(whole(b, last)) - Number(whole(a, last)) || b.size - a.size).map((b) => ({ b, base: (base += b.size) - b.size }));
}

/** As they lie in memory: allocations one on the other by number, in each its buffers at their offsets;
 * on top what has no place. Gaps are what others take, or nobody does. */
export function byOffset(buffers: readonly Buffer[], last: number): Placed[] {
  const tall = new Map<number, number>();
  for (const { place, size } of buffers) if (place) tall.set(place.allocation, Math.max(tall.get(place.allocation) ?? 0, place.offset + size));
  const bases = new Map<number, number>();
  let top = 0;
  for (const [allocation, bytes] of [...tall].sort((a, b) => a[0] - b[0])) {
    bases.set(allocation, top);
    top += bytes;
  }
  const there = buffers.flatMap((b) => (b.place ? [{ b, base: bases.get(b.place.allocation)! + b.place.offset }] : []));
  const rest = bySize(buffers.filter((b) => !b.place), last).map((p) => ({ b: p.b, base: p.base + top }));
  return [...there.sort((a, b) => a.base - b.base), ...rest];
}

/** 12-40, as the address has it: the steps that are shown; null: all, also where the program has no such steps. */
export function zoomOf(text: string, last: number): [from: number, to: number] | null {
  const m = /^(\d{1,9})-(\d{1,9})$/.exec(text);
  if (!m) return null;
  const [from, to] = [Number(m[1]), Math.min(last, Number(m[2]))];
  return from < to ? [from, to] : null;
}
