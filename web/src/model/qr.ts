// An address as a QR code (ISO/IEC 18004): bytes, the lowest level of correction, the smallest version that holds them.

const CORRECTION = [7, 10, 15, 20, 26, 18, 20, 24, 30, 18, 20, 24, 26, 30, 22, 24, 28, 30, 28, 28, 28, 28, 30, 30, 26, 28, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30]; // bytes of a block, by version
const BLOCKS = [1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6, 6, 6, 6, 7, 8, 8, 9, 9, 10, 12, 12, 12, 13, 14, 15, 16, 17, 18, 19, 19, 20, 21, 22, 24, 25];
const VERSIONS = 40;
const LOWEST = 1; // how the lowest level is written

export interface Code {
  size: number;
  dark: Uint8Array; // size × size, by rows
}

/** Modules that are neither patterns nor notes about the code, in whole bytes. */
function capacity(v: number): number {
  let modules = (16 * v + 128) * v + 64;
  if (v >= 2) {
    const n = Math.floor(v / 7) + 2;
    modules -= (25 * n - 10) * n - 55;
  }
  if (v >= 7) modules -= 36;
  return modules >> 3;
}

const room = (v: number): number => capacity(v) - CORRECTION[v - 1]! * BLOCKS[v - 1]!;
const countBits = (v: number): number => (v < 10 ? 8 : 16);

/* --- arithmetic of the field of 256 --- */

const EXP = new Uint8Array(255);
const LOG = new Uint8Array(256);
for (let i = 0, x = 1; i < 255; i++) {
  EXP[i] = x;
  LOG[x] = i;
  x = (x << 1) ^ (x & 128 ? 0x11d : 0);
}
const times = (a: number, b: number): number => (a && b ? EXP[(LOG[a]! + LOG[b]!) % 255]! : 0);

/** What is left of data × x^n by the product of (x - 2^i), i < n. */
export function correction(data: Uint8Array, n: number): Uint8Array {
  let divisor = new Uint8Array(n);
  divisor[n - 1] = 1;
  for (let i = 0; i < n; i++) divisor = divisor.map((d, j) => times(d, EXP[i]!) ^ (divisor[j + 1] ?? 0));
  const rest = new Uint8Array(n);
  for (const byte of data) {
    const factor = byte ^ rest[0]!;
    rest.copyWithin(0, 1);
    rest[n - 1] = 0;
    for (let i = 0; i < n; i++) rest[i]! ^= times(divisor[i]!, factor);
  }
  return rest;
}

/* --- bytes --- */

function payload(text: Uint8Array, v: number): Uint8Array {
  const out = new Uint8Array(room(v));
  let at = 0;
  const put = (value: number, bits: number): void => {
    for (let i = bits - 1; i >= 0; i--, at++) if ((value >> i) & 1) out[at >> 3]! |= 128 >> (at & 7);
  };
  put(4, 4); // bytes
  put(text.length, countBits(v));
  for (const b of text) put(b, 8);
  at = Math.min(out.length * 8, at + 4); // the end
  for (let i = (at + 7) >> 3, k = 0; i < out.length; i++, k++) out[i] = k % 2 ? 0x11 : 0xec;
  return out;
}

/** The blocks' bytes in turn, then those of their corrections. */
function interleaved(data: Uint8Array, v: number): Uint8Array {
  const [n, extra] = [BLOCKS[v - 1]!, CORRECTION[v - 1]!];
  const short = Math.floor(data.length / n);
  const longer = data.length % n; // blocks with one more, the last ones
  const blocks: Uint8Array[] = [];
  for (let i = 0, at = 0; i < n; i++) {
    const length = short + (i >= n - longer ? 1 : 0);
    blocks.push(data.subarray(at, at + length));
    at += length;
  }
  const ends = blocks.map((b) => correction(b, extra));
  const out: number[] = [];
  for (let i = 0; i <= short; i++) for (const b of blocks) if (i < b.length) out.push(b[i]!);
  for (let i = 0; i < extra; i++) for (const e of ends) out.push(e[i]!);
  return Uint8Array.from(out);
}

/* --- the square --- */

function remainder(value: number, bits: number, divisor: number): number {
  let rest = value;
  for (let i = 0; i < bits; i++) rest = (rest << 1) ^ ((rest >> (bits - 1)) * divisor);
  return rest;
}

function centres(v: number): number[] {
  if (v === 1) return [];
  const n = Math.floor(v / 7) + 2;
  const step = v === 32 ? 26 : Math.ceil((v * 4 + 4) / (n * 2 - 2)) * 2;
  return [6, ...Array.from({ length: n - 1 }, (_, i) => v * 4 + 10 - step * (n - 2 - i))];
}

class Square {
  readonly dark: Uint8Array;
  readonly taken: Uint8Array; // not for data

  constructor(readonly size: number) {
    this.dark = new Uint8Array(size * size);
    this.taken = new Uint8Array(size * size);
  }

  set(x: number, y: number, dark: boolean): void {
    if (x < 0 || y < 0 || x >= this.size || y >= this.size) return;
    this.dark[y * this.size + x] = Number(dark);
    this.taken[y * this.size + x] = 1;
  }

  /** Rings around a centre: dark by their distance. */
  rings(cx: number, cy: number, reach: number, isDark: (far: number) => boolean): void {
    for (let y = -reach; y <= reach; y++) for (let x = -reach; x <= reach; x++) this.set(cx + x, cy + y, isDark(Math.max(Math.abs(x), Math.abs(y))));
  }

  patterns(v: number): void {
    const last = this.size - 1;
    for (let i = 0; i < this.size; i++) {
      this.set(6, i, i % 2 === 0);
      this.set(i, 6, i % 2 === 0);
    }
    for (const [x, y] of [[3, 3], [last - 3, 3], [3, last - 3]] as const) this.rings(x, y, 4, (far) => far !== 2 && far !== 4);
    const at = centres(v);
    const [low, high] = [at[0], at[at.length - 1]];
    for (const x of at)
      for (const y of at) if (!((x === low && (y === low || y === high)) || (x === high && y === low))) this.rings(x, y, 2, (far) => far !== 1);
    this.format(0);
    if (v >= 7) this.version(v);
  }

  version(v: number): void {
    const bits = (v << 12) | remainder(v, 12, 0x1f25);
    for (let i = 0; i < 18; i++) {
      const [a, b] = [this.size - 11 + (i % 3), Math.floor(i / 3)];
      this.set(a, b, ((bits >> i) & 1) === 1);
      this.set(b, a, ((bits >> i) & 1) === 1);
    }
  }

  format(mask: number): void {
    const data = (LOWEST << 3) | mask;
    const bits = ((data << 10) | remainder(data, 10, 0x537)) ^ 0x5412;
    const bit = (i: number): boolean => ((bits >> i) & 1) === 1;
    const last = this.size - 1;
    for (let i = 0; i < 15; i++) {
      const near = i < 6 ? i : i < 8 ? i + 1 : 14 - i; // along the first corner, past the line of turns
      if (i < 8) this.set(8, near, bit(i));
      else this.set(i === 8 ? 7 : near, 8, bit(i));
      if (i < 8) this.set(last - i, 8, bit(i));
      else this.set(8, last - 14 + i, bit(i));
    }
    this.set(8, last - 7, true);
  }

  /** Two columns at a time, up and down, from the right. */
  data(bytes: Uint8Array): void {
    let at = 0;
    for (let right = this.size - 1; right >= 1; right -= 2) {
      if (right === 6) right = 5;
      const up = ((right + 1) & 2) === 0;
      for (let i = 0; i < this.size; i++)
        for (const x of [right, right - 1]) {
          const y = up ? this.size - 1 - i : i;
          if (this.taken[y * this.size + x]) continue;
          if (at < bytes.length * 8) this.dark[y * this.size + x] = (bytes[at >> 3]! >> (7 - (at & 7))) & 1;
          at++;
        }
    }
  }

  masked(mask: number): Square {
    const out = new Square(this.size);
    out.dark.set(this.dark);
    for (let y = 0; y < this.size; y++)
      for (let x = 0; x < this.size; x++) if (!this.taken[y * this.size + x] && MASKS[mask]!(x, y) === 0) out.dark[y * this.size + x]! ^= 1;
    out.format(mask);
    return out;
  }

  /** How hard it is to read: long runs, blocks, what looks like a corner, too much of one kind. */
  badness(): number {
    const { size, dark } = this;
    let bad = 0;
    let sum = 0;
    for (const at of [(i: number, j: number) => i * size + j, (i: number, j: number) => j * size + i])
      for (let i = 0; i < size; i++) {
        let run = 0;
        let bits = 0;
        for (let j = 0; j < size; j++) {
          const d = dark[at(i, j)]!;
          run = j > 0 && d === dark[at(i, j - 1)] ? run + 1 : 1;
          if (run === 5) bad += 3;
          else if (run > 5) bad++;
          bits = ((bits << 1) & 0x7ff) | d;
          if (j >= 10 && (bits === 0x05d || bits === 0x5d0)) bad += 40;
        }
      }
    for (let y = 0; y < size; y++)
      for (let x = 0; x < size; x++) {
        const d = dark[y * size + x]!;
        sum += d;
        if (x && y && d === dark[y * size + x - 1] && d === dark[(y - 1) * size + x] && d === dark[(y - 1) * size + x - 1]) bad += 3;
      }
    return bad + Math.floor(Math.abs((sum * 20) / (size * size) - 10)) * 10;
  }
}

const MASKS: ((x: number, y: number) => number)[] = [
  (x, y) => (x + y) % 2, (_, y) => y % 2, (x) => x % 3, (x, y) => (x + y) % 3,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2, (x, y) => ((x * y) % 2) + ((x * y) % 3),
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2, (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2,
];

/** null: it is too long. mask: else the one that is easiest to read. */
export function qrOf(text: string, mask?: number): Code | null {
  const bytes = new TextEncoder().encode(text);
  let v = 1;
  while (v <= VERSIONS && 4 + countBits(v) + bytes.length * 8 > room(v) * 8) v++;
  if (v > VERSIONS) return null;
  const square = new Square(v * 4 + 17);
  square.patterns(v);
  square.data(interleaved(payload(bytes, v), v));
  const all = mask === undefined ? MASKS.map((_, i) => square.masked(i)) : [square.masked(mask)];
  const best = all.reduce((a, b) => (b.badness() < a.badness() ? b : a));
  return { size: best.size, dark: best.dark };
}
