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
  atPeak?: boolean; // undefined: all are
}

export interface Placed {
  b: Buffer;
  base: number;
}

const whole = (b: Buffer, last: number): boolean => b.begin <= 0 && b.end >= last;

/** What lives as long as the program at the bottom, then the largest, each as low as what is alive
 * meanwhile leaves it: no two that are alive at one time share a height. */
export function bySize(buffers: readonly Buffer[], last: number): Placed[] {
  const order = [...buffers].sort((a, b) => Number(whole(b, last)) - Number(whole(a, last)) || b.size - a.size);
  const low: Placed[] = []; // by base
  return order.map((b) => {
    let base = 0;
    for (const p of low) {
      if (p.b.end <= b.begin || p.b.begin >= b.end) continue;
      if (p.base >= base + b.size) break;
      base = Math.max(base, p.base + p.b.size);
    }
    const placed = { b, base };
    let [from, to] = [0, low.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (low[middle]!.base <= base) from = middle + 1;
      else to = middle;
    }
    low.splice(from, 0, placed);
    return placed;
  });
}

/** At each of so many places between two steps: how much is alive, and how many. */
export interface Rest {
  bytes: Float64Array;
  count: Float64Array;
}

/** What is too small to be seen by itself, together; `more`: what the server told so already, by step. */
export function together(small: readonly Buffer[], more: readonly (readonly [step: number, bytes: number, count: number])[], from: number, to: number, places: number): Rest {
  const bytes = new Float64Array(places + 1);
  const count = new Float64Array(places + 1);
  const at = (step: number): number => Math.min(places, Math.max(0, Math.floor(((step - from) / (to - from)) * places)));
  for (const b of small) {
    const [first, end] = [at(b.begin), Math.max(at(b.begin) + 1, at(b.end))];
    if (first >= places) continue;
    bytes[first]! += b.size;
    count[first]!++;
    bytes[Math.min(places, end)]! -= b.size;
    count[Math.min(places, end)]!--;
  }
  for (let i = 1; i < places; i++) {
    bytes[i]! += bytes[i - 1]!;
    count[i]! += count[i - 1]!;
  }
  const out = { bytes: bytes.subarray(0, places), count: count.subarray(0, places) };
  if (more.length === 0) return out;
  let k = 0;
  for (let i = 0; i < places; i++) {
    const step = from + ((i + 0.5) / places) * (to - from);
    while (k + 1 < more.length && more[k + 1]![0] <= step) k++;
    if (more[k]![0] > step) continue;
    out.bytes[i]! += more[k]![1];
    out.count[i]! += more[k]![2];
  }
  return out;
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
