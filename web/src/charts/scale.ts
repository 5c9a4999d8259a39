// Ticks that people can read, in the unit that fits the axis.

export interface Axis {
  min: number;
  max: number;
  ticks: { at: number; text: string }[];
  title: string; // the unit of the ticks
}

const FIRST = 1e-300;

/** 1, 2 or 5 times a power of ten, at least x. */
export function niceStep(x: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(x, FIRST)));
  const lead = x / power;
  return (lead <= 1.0000001 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10) * power;
}

interface UnitScale {
  size: number;
  name: string;
}

const SCALES: Record<string, UnitScale[]> = {
  ps: [{ size: 1e12, name: "s" }, { size: 1e9, name: "ms" }, { size: 1e6, name: "µs" }, { size: 1e3, name: "ns" }, { size: 1, name: "ps" }],
  ns: [{ size: 1e9, name: "s" }, { size: 1e6, name: "ms" }, { size: 1e3, name: "µs" }, { size: 1, name: "ns" }],
  bytes: ["TiB", "GiB", "MiB", "KiB", "B"].map((name, i) => ({ size: 1024 ** (4 - i), name })),
  "bytes/s": ["TiB/s", "GiB/s", "MiB/s", "KiB/s", "B/s"].map((name, i) => ({ size: 1024 ** (4 - i), name })),
  flop: ["PFLOP", "TFLOP", "GFLOP", "MFLOP", "kFLOP", "FLOP"].map((name, i) => ({ size: 10 ** (15 - 3 * i), name })),
  "flop/s": ["PFLOP/s", "TFLOP/s", "GFLOP/s", "MFLOP/s", "kFLOP/s", "FLOP/s"].map((name, i) => ({ size: 10 ** (15 - 3 * i), name })),
  fraction: [{ size: 0.01, name: "%" }],
  "flop/byte": [{ size: 1, name: "FLOP/B" }],
  count: [{ size: 1e9, name: "G" }, { size: 1e6, name: "M" }, { size: 1e3, name: "k" }, { size: 1, name: "" }],
};

export function unitScale(unit: string, max: number): UnitScale {
  const list = SCALES[unit];
  if (!list) return { size: 1, name: unit };
  return list.find((s) => max >= s.size * (unit === "count" ? 10 : 1)) ?? list[list.length - 1]!;
}

function tickText(v: number, step: number): string {
  const decimals = Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9)));
  return v.toFixed(decimals).replace(/^-(0(\.0+)?)$/, "$1");
}

export function linearAxis(low: number, high: number, unit: string, wanted = 5): Axis {
  if (!(high > low)) high = low + (low === 0 ? 1 : Math.abs(low));
  const scale = unitScale(unit, Math.max(Math.abs(low), Math.abs(high)));
  const step = niceStep((high - low) / scale.size / wanted);
  const from = Math.floor(low / scale.size / step + 1e-9);
  const to = Math.ceil(high / scale.size / step - 1e-9);
  const ticks = [];
  for (let i = from; i <= to && ticks.length < 60; i++) ticks.push({ at: i * step * scale.size, text: tickText(i * step, step) });
  return { min: from * step * scale.size, max: to * step * scale.size, ticks, title: scale.name };
}

/** Powers of ten, thinned where there are many; with 2 and 5 where there are few. */
export function logAxis(low: number, high: number, unit: string, format: (x: number, unit: string) => string, wanted = 6): Axis {
  const a = Math.floor(Math.log10(Math.max(low, FIRST)) + 1e-9);
  const b = Math.max(a + 1, Math.ceil(Math.log10(Math.max(high, FIRST)) - 1e-9));
  const every = Math.max(1, Math.ceil((b - a) / wanted));
  const ticks = [];
  for (let e = a; e <= b; e += every) {
    for (const m of b - a <= 2 ? [1, 2, 5] : [1]) {
      const at = m * 10 ** e;
      if (at <= 10 ** b * 1.0001) ticks.push({ at, text: format(at, unit) });
    }
  }
  return { min: 10 ** a, max: 10 ** b, ticks, title: "" };
}

/** Which labels of a category axis fit: every nth. */
export function thin(n: number, width: number, each: number): number {
  return Math.max(1, Math.ceil((n * each) / Math.max(1, width)));
}
