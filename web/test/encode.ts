// The other half of api/wire.ts: enough to write a Window for the tests.

export function varint(value: number | bigint): number[] {
  let v = BigInt.asUintN(64, BigInt(value));
  const out: number[] = [];
  do {
    out.push(Number(v & 127n) | (v > 127n ? 128 : 0));
    v >>= 7n;
  } while (v > 0n);
  return out;
}

export const zigzag = (n: number | bigint): bigint => (BigInt(n) << 1n) ^ (BigInt(n) >> 63n);
export const int = (field: number, value: number | bigint): number[] => [...varint(field << 3), ...varint(value)];
export const block = (field: number, bytes: number[]): number[] => [...varint((field << 3) | 2), ...varint(bytes.length), ...bytes];
export const packed = (field: number, values: (number | bigint)[]): number[] => block(field, values.flatMap(varint));
export const text = (field: number, value: string): number[] => block(field, [...new TextEncoder().encode(value)]);

export interface Rect {
  begin: number;
  duration: number;
  name: number;
  id: number | bigint;
  count?: number;
  busy?: number;
}

/** A row as the server writes it; begins count from the window's t0. */
export function row(line: number, lane: number, rects: Rect[], events = rects.length, hidden = 0): number[] {
  let end = 0;
  let id = 0n;
  const begin = rects.map((r, i) => {
    const gap = i === 0 ? zigzag(r.begin) : BigInt(r.begin - end);
    end = r.begin + r.duration;
    return gap;
  });
  const ids = rects.map((r) => {
    const step = zigzag(BigInt.asIntN(64, BigInt(r.id) - id));
    id = BigInt(r.id);
    return step;
  });
  const merged = rects.some((r) => (r.count ?? 1) > 1);
  return block(5, [
    ...int(1, line), ...int(2, lane), ...int(3, events), ...int(4, hidden),
    ...packed(6, begin), ...packed(7, rects.map((r) => r.duration)), ...packed(8, rects.map((r) => r.name)), ...packed(9, ids),
    ...(merged ? packed(10, rects.map((r) => r.count ?? 1)) : []),
    ...(merged ? packed(11, rects.flatMap((r) => ((r.count ?? 1) > 1 ? [r.busy ?? 0] : []))) : []),
  ]);
}

export function windowOf(t0: bigint | number, t1: bigint | number, px: number, names: string[], rows: number[][]): Uint8Array {
  return Uint8Array.from([...int(1, t0), ...int(2, t1), ...int(3, px), ...names.flatMap((n) => text(4, n)), ...rows.flat()]);
}
