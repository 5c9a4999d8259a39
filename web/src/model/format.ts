// Numbers for people: units always shown, digits aligned, exact values next to short ones.

type Num = number | bigint;

const UNITS: [string, number][] = [["s", 1e12], ["ms", 1e9], ["µs", 1e6], ["ns", 1e3], ["ps", 1]];

const GROUP = "\u202f"; // narrow no-break space

/** 1234567 -> "1 234 567" (narrow spaces). */
export function count(n: Num): string {
  const text = String(n);
  const from = text.startsWith("-") ? 1 : 0;
  let out = text.slice(from);
  if (!/^\d+$/.test(out)) return text;
  if (out.length > 4) out = out.replace(/\B(?=(\d{3})+$)/g, GROUP);
  return text.slice(0, from) + out;
}

/** 1234567 -> "1.23 M". */
export function shortCount(n: number): string {
  if (n < 10_000) return count(n);
  for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e3]] as const)
    if (n >= size) return `${digits(n / size, 3)} ${unit}`;
  return count(n);
}

/** At most n significant digits, no exponent. */
export function digits(x: number, n: number): string {
  if (x === 0) return "0";
  const rounded = Math.abs(Number(x.toPrecision(n)));
  const whole = Math.floor(Math.log10(rounded)) + 1;
  return x.toFixed(Math.min(12, Math.max(0, n - whole)));
}

/** A time or a duration in its best unit: 12.3 µs. */
export function duration(ps: Num, significant = 4): string {
  const x = Number(ps);
  if (x === 0) return "0 ps";
  const [unit, size] = UNITS.find(([, s]) => Math.abs(x) >= s * 0.9995) ?? UNITS[4]!;
  if (unit === "ps") return `${count(BigInt(Math.round(x)))} ps`;
  if (unit === "s" && Math.abs(x) >= 1e16) return `${count(Math.round(x / 1e12))} s`;
  return `${digits(x / size, significant)} ${unit}`;
}

/** Every digit, in ns: 12 345.678 ns. */
export function exactNs(ps: Num): string {
  const x = BigInt(ps);
  const sign = x < 0n ? "-" : "";
  const abs = x < 0n ? -x : x;
  const rest = (abs % 1000n).toString().padStart(3, "0");
  return `${sign}${count(abs / 1000n)}${rest === "000" ? "" : `.${rest}`} ns`;
}

/** Position on the session's clock with every digit that matters at this step. */
export function timestamp(ps: bigint): string {
  const sign = ps < 0n ? "-" : "";
  const abs = ps < 0n ? -ps : ps;
  const s = abs / 1_000_000_000_000n;
  const rest = (abs % 1_000_000_000_000n).toString().padStart(12, "0");
  const groups = [rest.slice(0, 3), rest.slice(3, 6), rest.slice(6, 9), rest.slice(9)];
  while (groups.length > 1 && groups[groups.length - 1] === "000") groups.pop();
  return `${sign}${count(s)}.${groups.join(GROUP)} s`;
}

export function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  let x = n;
  for (const unit of ["KiB", "MiB", "GiB", "TiB"]) {
    x /= 1024;
    if (x < 1023.5 || unit === "TiB") return `${digits(x, 3)} ${unit}`;
  }
  return `${n} B`;
}

export function percent(part: number, whole: number): string {
  if (whole <= 0) return "";
  const p = (100 * part) / whole;
  return p > 0 && p < 0.1 ? "<0.1 %" : `${p.toFixed(1)} %`;
}

export function plural(n: number, one: string, many = one + "s"): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** In the viewer's zone, with the zone; ISO for the hover. */
export function date(ms: number | null): { text: string; iso: string } {
  const d = new Date(ms ?? 0);
  if (!ms || Number.isNaN(d.getTime())) return { text: "unknown", iso: "" };
  const text = new Intl.DateTimeFormat("en-GB", {
    year: "numeric", month: "short", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit",
    timeZoneName: "short",
  }).format(d);
  return { text, iso: d.toISOString() };
}

/** A moment to the microsecond in the viewer's zone, with the zone; ISO to the nanosecond for the hover. */
export function clock(ns: bigint): { text: string; iso: string } {
  const d = new Date(Number(ns / 1_000_000n));
  const part = (ns % 1_000_000n).toString().padStart(6, "0");
  const at = new Intl.DateTimeFormat("en-GB", {
    hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, timeZoneName: "short",
  }).formatToParts(d);
  const text = at.map((p) => (p.type === "fractionalSecond" ? `${p.value}${GROUP}${part.slice(0, 3)}` : p.value)).join("");
  return { text, iso: `${d.toISOString().slice(0, -1)}${part}Z` };
}

/** Of today, in the viewer's zone, with the zone. */
export const hour = (ms: number): string => new Date(ms).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", timeZoneName: "short" });

/* "" for a time that is not known. */
export function ago(ms: number | null, now: number): string {
  if (!ms) return "";
  const s = Math.round((now - ms) / 1000);
  if (s < 0) return "in the future";
  if (s < 60) return "just now";
  for (const [unit, size] of [["day", 86400], ["hour", 3600], ["minute", 60]] as const)
    if (s >= size) return `${plural(Math.floor(s / size), unit)} ago`;
  return "";
}
