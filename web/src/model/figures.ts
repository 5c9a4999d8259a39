// The few figures of a run that its list shows. A list of thousands of runs loads none of them: they
// are kept when somebody sees them, and asked for only for rows that are in the list, on demand.
import type { Cell, Report } from "../api/report";
import { asNumber } from "./units";

export interface Figures {
  device: string | null;
  step: number | null; // ps
  memory: number | null; // bytes, of the peak
  why: Partial<Record<"device" | "step" | "memory", string>>; // of what is null
}

const NOT_ASKED = "not asked for yet";

/** Whether there is nothing more to ask for. */
export function isComplete(f: Figures): boolean {
  return f.why.memory !== NOT_ASKED;
}

interface Kept extends Figures {
  bytes: number; // of the run's files when it was read: of others we know nothing
}

const KEY = "xprofd.figures";
const MOST = 400;

function value(r: Report | null, id: string): Cell {
  return r?.metrics.find((m) => m.id === id)?.value ?? null;
}

function reason(r: Report | null, id: string): string {
  const m = r?.metrics.find((x) => x.id === id);
  return m?.reason ?? "the profile does not say";
}

/** `memory`: null when that report could not be made, undefined when nobody asked for it. */
export function figuresOf(overview: Report, memory: Report | null | undefined): Figures {
  const device = value(overview, "device_type");
  const step = asNumber(value(overview, "step_time_mean"));
  const source = overview.metrics.some((m) => m.id === "peak_memory" && m.value !== null) ? overview : memory ?? null;
  const peak = asNumber(value(source, "peak_memory"));
  const why: Figures["why"] = {};
  if (device === null) why.device = reason(overview, "device_type");
  if (!(step > 0)) why.step = reason(overview, "step_time_mean");
  if (!(peak > 0)) why.memory = source === null && memory === undefined ? NOT_ASKED : reason(source, "peak_memory");
  return { device: device === null ? null : String(device), step: step > 0 ? step : null, memory: peak > 0 ? peak : null, why };
}

function isKept(x: unknown): x is Kept {
  if (x === null || typeof x !== "object") return false;
  const k = x as Record<string, unknown>;
  const amount = (v: unknown): boolean => v === null || (typeof v === "number" && v > 0);
  return typeof k["bytes"] === "number" && amount(k["step"]) && amount(k["memory"]) && (k["device"] === null || typeof k["device"] === "string") &&
    k["why"] !== null && typeof k["why"] === "object";
}

/** What the browser keeps, oldest first; anything that is not ours is dropped. */
export function parseKept(text: string | null): Map<string, Kept> {
  try {
    const got: unknown = JSON.parse(text ?? "[]");
    if (Array.isArray(got)) return new Map(got.filter((e): e is [string, Kept] => Array.isArray(e) && typeof e[0] === "string" && isKept(e[1])));
  } catch {
    // not ours
  }
  return new Map();
}

export class FigureStore {
  private map: Map<string, Kept>;

  constructor(private readonly storage: Pick<Storage, "getItem" | "setItem"> | null) {
    let text: string | null = null;
    try {
      text = storage?.getItem(KEY) ?? null;
    } catch {
      // storage may be forbidden
    }
    this.map = parseKept(text);
  }

  get(root: string, run: string, bytes: number): Figures | null {
    const kept = this.map.get(`${root}\0${run}`);
    return kept && kept.bytes === bytes ? kept : null;
  }

  put(root: string, run: string, bytes: number, f: Figures): void {
    const key = `${root}\0${run}`;
    const old = this.get(root, run, bytes);
    this.map.delete(key);
    this.map.set(key, { ...f, ...(old && !isComplete(f) ? { memory: old.memory, why: { ...f.why, memory: old.why.memory ?? "" } } : {}), bytes });
    for (const old of this.map.keys()) {
      if (this.map.size <= MOST) break;
      this.map.delete(old);
    }
    try {
      this.storage?.setItem(KEY, JSON.stringify([...this.map]));
    } catch {
      // they stay for this page only
    }
  }
}
