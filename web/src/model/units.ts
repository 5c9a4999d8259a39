// Values of reports for people: one unit system for tiles, tables, charts and downloads.
import { big } from "../api/json";
import type { Cell } from "../api/report";
import { bytes, count, digits, duration, exactNs } from "./format";

type Num = number | bigint;

const isNum = (v: unknown): v is Num => typeof v === "number" || typeof v === "bigint";

const SI: [number, string][] = [[1e18, "E"], [1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];

/** 12.3 T + unit; small ones as they are. */
export function si(x: number, unit: string, significant = 4): string {
  const size = Math.abs(x);
  const [scale, prefix] = SI.find(([s]) => size >= s * 0.9995) ?? SI[SI.length - 1]!;
  const text = size === 0 ? "0" : size < 1e-4 ? x.toExponential(2) : digits(x / scale, significant);
  return `${text} ${prefix}${unit}`.trimEnd();
}

/** A fraction as a share of a hundred: 41.2 %, and small ones are not called 0. */
export function share(x: number): string {
  const p = x * 100;
  if (Math.abs(x) >= 10) return `×${count(Number(x.toPrecision(3)))}`; // of the whole; as percent nobody reads it
  if (p !== 0 && Math.abs(p) < 0.01) return p < 0 ? ">-0.01 %" : "<0.01 %";
  return `${digits(p, Math.abs(p) >= 100 ? 4 : 3)} %`;
}

export function plain(x: Num): string {
  if (typeof x === "bigint" || Number.isInteger(x)) return count(x);
  if (Math.abs(x) >= 1e6 || (Math.abs(x) < 1e-4 && x !== 0)) return x.toExponential(3);
  return digits(x, 4);
}

export function number(x: Num, unit: string): string {
  const n = Number(x);
  switch (unit) {
    case "ps": return duration(typeof x === "bigint" ? x : Math.abs(x) < 1 ? x : Math.round(x));
    case "ns": return duration(n * 1000);
    case "us": return duration(n * 1e6);
    case "ms": return duration(n * 1e9);
    case "s": return duration(n * 1e12);
    case "bytes": return n < 0 ? `-${bytes(-n)}` : bytes(Math.round(n));
    case "bytes/s": return `${n < 1024 ? digits(n, 3) + " B" : bytes(n)}/s`;
    case "flop": return si(n, "FLOP");
    case "flop/s": return si(n, "FLOP/s");
    case "flop/byte": return `${plain(x)} FLOP/B`;
    case "fraction": return share(n);
    case "percent": case "%": return share(n / 100);
    case "count": case "": return plain(x);
    default: return `${plain(x)} ${unit}`;
  }
}

/** What a cell or a tile says; null is the caller's to explain. */
export function show(v: Cell | undefined, unit: string): string {
  if (v === null || v === undefined) return "n/a";
  if (typeof v === "boolean") return v ? "yes" : "no";
  if (typeof v === "string") return v;
  return Number.isNaN(Number(v)) ? "n/a" : number(v, unit);
}

/** Every digit, for the hover. */
export function exact(v: Cell | undefined, unit: string): string {
  if (v === null || v === undefined || typeof v === "boolean") return "";
  if (typeof v === "string") return v;
  if (unit === "ps") return Number.isInteger(Number(v)) ? exactNs(typeof v === "bigint" ? v : BigInt(v)) : `${v} ps`;
  const whole = typeof v === "bigint" || Number.isInteger(v) ? count(v) : String(v);
  return unit && unit !== "count" ? `${whole} ${unit}` : whole;
}

/** In the words of a signed change: +1.2 ms, −3 %. */
export function signed(x: Num, unit: string): string {
  const n = Number(x);
  const text = number(n < 0 ? (typeof x === "bigint" ? -x : -x) : x, unit);
  return n > 0 ? `+${text}` : n < 0 ? `\u2212${text}` : text;
}

/** The value of a cell as a double for charts and order; NaN where there is none. */
export function asNumber(v: Cell | undefined): number {
  if (isNum(v)) return Number(v);
  if (typeof v === "boolean") return v ? 1 : 0;
  return NaN;
}

const SUFFIX: Record<string, number> = {
  ps: 1, ns: 1e3, us: 1e6, "µs": 1e6, ms: 1e9, s: 1e12,
  b: 1, kib: 1024, mib: 1024 ** 2, gib: 1024 ** 3, tib: 1024 ** 4, kb: 1e3, mb: 1e6, gb: 1e9, tb: 1e12,
  k: 1e3, m: 1e6, g: 1e9, t: 1e12,
};

/** "10us", "2GiB", "5%" in the column's own unit; NaN if it is none. A bare number is in the unit of the column. */
export function parseAmount(text: string, unit: string): number {
  const m = /^(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*([a-zµ%]*)(?:\/s)?$/i.exec(text.trim());
  if (!m) return NaN;
  const n = Number(m[1]);
  const suffix = m[2]!.toLowerCase();
  if (suffix === "") return n;
  if (suffix === "%") return unit === "fraction" ? n / 100 : n;
  const scale = SUFFIX[suffix];
  if (scale === undefined) return NaN;
  if (unit === "ns" && /^(ps|ns|us|µs|ms|s)$/.test(suffix)) return (n * scale) / 1e3;
  return n * scale;
}

/** Text-ordered names with their numbers by value: fusion.2 before fusion.10. */
export function natural(text: string): string {
  return text.toLowerCase().replace(/\d+/g, (d) => d.padStart(12, "0"));
}

/** For a mean of bigints and numbers alike. */
export function sum(values: Iterable<Cell | undefined>): Num {
  let wide = 0n;
  let small = 0; // of what is whole; goes to `wide` before it is no longer exact
  let floats = 0;
  let whole = true;
  for (const v of values) {
    if (typeof v === "bigint") wide += v;
    else if (typeof v === "number" && !Number.isNaN(v)) {
      if (whole && Number.isSafeInteger(v)) {
        if (Number.isSafeInteger(small + v)) small += v;
        else {
          wide += BigInt(small);
          small = v;
        }
      } else {
        whole = false;
        floats += v;
      }
    }
  }
  wide += BigInt(small);
  const low = Number.isSafeInteger(Number(wide)) ? Number(wide) : wide;
  return whole ? low : Number(wide) + floats;
}

export { big };
