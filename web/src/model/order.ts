// Order of many rows by one column, without a comparison: each cell becomes one to three doubles,
// and a radix sort over these moves indices. What the cells became is kept with the rows, so that
// turning the order round costs the sort alone.
import type { Cell } from "../api/report";
import { natural, show } from "./units";

const DIGIT = 11;
const BUCKETS = 1 << DIGIT;
const SHIFTS = [[0, 0], [0, 11], [0, 22], [1, 0], [1, 11], [1, 22]] as const; // [word, bit] of a double's digits

/** Doubles as pairs of words whose order as unsigned integers is theirs; `flip` turns it round. */
function words(keys: Float64Array, flip: boolean): Uint32Array {
  const w = new Uint32Array(keys.length * 2);
  new Float64Array(w.buffer).set(keys);
  const turn = flip ? 0xffffffff : 0;
  for (let i = 0; i < w.length; i += 2) {
    const hi = w[i + 1]!;
    if (hi === 0x80000000 && w[i] === 0) w[i + 1] = 0; // -0 is 0
    const sign = w[i + 1]! >>> 31;
    w[i] = (sign ? ~w[i]! : w[i]!) ^ turn;
    w[i + 1] = (sign ? ~w[i + 1]! : w[i + 1]! ^ 0x80000000) ^ turn;
  }
  return w;
}

/** Moves the indices of `order`, which is used up, into the order of their keys; equal ones stay as they stand. */
function radix(order: Uint32Array<ArrayBuffer>, keys: Float64Array, descending: boolean): Uint32Array<ArrayBuffer> {
  const n = order.length;
  const w = words(keys, descending);
  let from = order;
  let to = new Uint32Array(n);
  const counts = new Uint32Array(BUCKETS);
  for (const [word, shift] of SHIFTS) {
    counts.fill(0);
    for (let k = 0; k < n; k++) counts[(w[2 * from[k]! + word]! >>> shift) & (BUCKETS - 1)]!++;
    if (n > 0 && counts[(w[2 * from[0]! + word]! >>> shift) & (BUCKETS - 1)] === n) continue; // all alike
    for (let b = 0, at = 0; b < BUCKETS; b++) {
      const c = counts[b]!;
      counts[b] = at;
      at += c;
    }
    for (let k = 0; k < n; k++) {
      const i = from[k]!;
      to[counts[(w[2 * i + word]! >>> shift) & (BUCKETS - 1)]!++] = i;
    }
    [from, to] = [to, from];
  }
  return from;
}

/** Ranks of texts among all of them; few of many differ, mostly. */
function ranks(texts: readonly string[]): Float64Array {
  const seen = new Map<string, number>();
  const at = new Uint32Array(texts.length);
  for (let i = 0; i < texts.length; i++) {
    let id = seen.get(texts[i]!);
    if (id === undefined) seen.set(texts[i]!, (id = seen.size));
    at[i] = id;
  }
  const sorted = Array.from(seen, ([text, id]) => ({ text: natural(text), id })).sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0));
  const rank = new Float64Array(sorted.length);
  for (let r = 0, last = 0; r < sorted.length; r++) {
    if (r > 0 && sorted[r]!.text !== sorted[r - 1]!.text) last = r;
    rank[sorted[r]!.id] = last;
  }
  return Float64Array.from(at, (id) => rank[id]!);
}

/** Names such as fusion.12.remat: by what stands before the first number, the number, the rest. */
function textKeys(texts: readonly (string | null)[]): Float64Array[] {
  const n = texts.length;
  const heads: string[] = new Array<string>(n);
  const tails: string[] = new Array<string>(n);
  const numbers = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    const t = texts[i] ?? "";
    let a = 0;
    while (a < t.length && (t.charCodeAt(a) < 48 || t.charCodeAt(a) > 57)) a++;
    let b = a;
    let value = 0;
    for (let c = 0; b < t.length && (c = t.charCodeAt(b)) >= 48 && c <= 57; b++) value = value * 10 + (c - 48);
    heads[i] = t.slice(0, a);
    numbers[i] = b > a ? value : -1;
    tails[i] = t.slice(b);
  }
  const first = ranks(heads);
  for (let i = 0; i < n; i++) if (texts[i] === null) first[i] = NaN;
  return [first, numbers, ranks(tails)];
}

function keysOf(rows: readonly (readonly Cell[])[], at: number): Float64Array[] {
  const n = rows.length;
  const keys = new Float64Array(n);
  let wide: Float64Array | null = null; // the low halves of integers beyond doubles
  for (let i = 0; i < n; i++) {
    const v = rows[i]![at];
    if (typeof v === "number") keys[i] = v;
    else if (typeof v === "boolean") keys[i] = v ? 1 : 0;
    else if (typeof v === "bigint") {
      wide ??= new Float64Array(n);
      keys[i] = Number(v);
      wide[i] = Number(v - BigInt(keys[i]!)); // what the double has lost
    } else if (typeof v === "string") return textKeys(rows.map((r) => (r[at] === null || r[at] === undefined ? null : show(r[at], ""))));
    else keys[i] = NaN;
  }
  return wide ? [keys, wide] : [keys];
}

const kept = new WeakMap<readonly (readonly Cell[])[], Map<number, Float64Array[]>>();

/** The indices in the order of a column. Missing values come last either way; equal ones stay as they stand. */
export function orderBy(rows: readonly (readonly Cell[])[], chosen: Uint32Array, at: number, descending: boolean): Uint32Array {
  let columns = kept.get(rows);
  if (!columns) kept.set(rows, (columns = new Map()));
  let keys = columns.get(at);
  if (!keys) columns.set(at, (keys = keysOf(rows, at)));
  const first = keys[0]!;
  const out = new Uint32Array(chosen.length);
  let n = 0;
  for (let k = 0; k < chosen.length; k++) if (!Number.isNaN(first[chosen[k]!])) out[n++] = chosen[k]!;
  let known = out.slice(0, n);
  for (let k = 0; n < out.length; k++) if (Number.isNaN(first[chosen[k]!])) out[n++] = chosen[k]!;
  for (const key of [...keys].reverse()) known = radix(known, key, descending);
  out.set(known);
  return out;
}
