// Where the time ruler has its marks, and what they say.
import { count, timestamp } from "../model/format";
import type { View } from "../model/view";
import { unit as scale } from "./unit";

export interface Tick {
  x: number;
  label: string | null; // null: a minor mark
}

export interface Ruler {
  ticks: Tick[];
  base: string; // "" or the time that labels with + count from
}

const UNITS: [string, number][] = [["s", 1e12], ["ms", 1e9], ["µs", 1e6], ["ns", 1e3], ["ps", 1]];

/** 1, 2 or 5 times a power of ten, at least x. */
export function niceStep(x: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(x, 1)));
  for (const f of [1, 2, 5, 10]) if (f * power >= x * 0.999) return f * power;
  return 10 * power;
}

function unitOf(step: number): [string, number] {
  return UNITS.find(([, size]) => step >= size) ?? UNITS[4]!;
}

function floorTo(t: bigint, step: bigint): bigint {
  const r = t % step;
  return r < 0n ? t - r - step : t - r;
}

/**
 * Labels count from the session's start as long as that stays short; deep in a long session
 * they count from a round time that stands once at the left.
 */
export function layoutRuler(v: View, width: number, gap = 110 * scale()): Ruler {
  const step = niceStep((v.span * gap) / width);
  const big = BigInt(step);
  const [unit, size] = unitOf(step);
  const wide = Number(v.t0 < 0n ? -v.t0 : v.t0) + v.span >= size * 10_000;
  const base = wide ? floorTo(v.t0, BigInt(size) * 1000n) : 0n;
  const minor = step / (String(step).startsWith("2") ? 4 : 5);
  const ticks: Tick[] = [];
  for (let t = floorTo(v.t0, big); ; t += big) {
    const x = (Number(t - v.t0) / v.span) * width;
    if (x >= width) break;
    ticks.push({ x, label: labelOf(t - base, unit, size, wide) });
    if (minor >= 1)
      for (let m = minor; m < step * 0.999; m += minor) ticks.push({ x: x + (m / v.span) * width, label: null });
  }
  return { ticks: ticks.filter((k) => k.x > -gap && k.x < width), base: wide ? timestamp(base) : "" };
}

function labelOf(t: bigint, unit: string, size: number, plus: boolean): string {
  const x = Number(t) / size;
  const text = Number.isInteger(x) ? count(x) : String(Math.round(x * 1000) / 1000);
  return `${plus && t >= 0n ? "+" : ""}${text} ${unit}`;
}
