// What the page of captures knows without a browser: presets, what will happen, how far it is, and
// what came of it, in words.
import type { Capture, Levels, Options, Phase, Target, TargetResult, Wanted } from "../api/captures";
import { bytes, digits, plural } from "./format";

/** Protobuf ends at 2 GiB, and a program that passes it may be ended by it: stay well below. */
export const LIMIT_BYTES = 2 ** 31;
const SAFE_BYTES = 0.75 * LIMIT_BYTES;
const PROBED_MS = 5000; // longer windows of targets that nobody knows

export const DURATION = { least: 100, most: 600_000 };
export const DELAY = { least: 0, most: 600_000 };

export const HOST_LEVELS = ["Off", "Critical", "Info", "Verbose"] as const;

export interface Preset {
  id: string;
  label: string;
  about: string;
  duration_ms: number;
  levels: Levels;
  options: readonly (readonly [string, string])[];
}

export const PRESETS: readonly Preset[] = [
  { id: "quick", label: "Quick", about: "Two seconds of devices and hosts: where the time of a step goes", duration_ms: 2000, levels: { host: 2, device: 1, python: 0 }, options: [] },
  { id: "detailed", label: "Detailed", about: "All that hosts tell, with Python's calls: large, and the program is slower meanwhile", duration_ms: 2000, levels: { host: 3, device: 1, python: 1 }, options: [] },
  { id: "memory", label: "Memory", about: "Ten seconds of allocations, so that growth from step to step can be seen", duration_ms: 10_000, levels: { host: 2, device: 1, python: 0 }, options: [] },
  { id: "kernel", label: "Kernel", about: "Half a second of what the cores of a TPU do, with their synchronisation, and little of the hosts", duration_ms: 500, levels: { host: 1, device: 1, python: 0 }, options: [["tpu_trace_mode", "TRACE_COMPUTE_AND_SYNC"]] },
];

/** What is known to be understood by JAX's profilers; others are sent all the same. */
export const KNOWN_OPTIONS = [
  "tpu_trace_mode", "tpu_num_sparse_cores_to_trace", "tpu_num_sparse_core_tiles_to_trace", "tpu_num_chips_to_profile_per_task",
  "gpu_max_callback_api_events", "gpu_max_activity_api_events", "gpu_max_annotation_strings", "gpu_enable_nvtx_tracking",
  "gpu_enable_cupti_activity_graph_trace", "gpu_pm_sample_counters", "gpu_pm_sample_interval_us", "gpu_pm_sample_buffer_size_per_gpu_mb",
] as const;

export interface Form {
  duration: string; // seconds, as typed
  delay: string;
  run: string;
  levels: Levels;
  options: readonly (readonly [string, string])[];
}

export function formOf(p: Preset, run = ""): Form {
  return { duration: seconds(p.duration_ms), delay: "0", run, levels: p.levels, options: p.options };
}

/** Options that no preset sets were typed: they stay, as run and delay do. */
export function withPreset(f: Form, p: Preset): Form {
  const set = (key: string, value: string): boolean => PRESETS.some((q) => q.options.some(([k, v]) => k === key && v === value));
  const typed = f.options.filter(([k, v]) => !set(k, v) && !p.options.some(([key]) => key === k));
  return { ...formOf(p, f.run), delay: f.delay, options: [...p.options, ...typed] };
}

/** The preset that the form says, whatever its run and delay. */
export function presetOf(f: Form): string {
  const same = (p: Preset): boolean =>
    milliseconds(f.duration) === p.duration_ms && f.levels.host === p.levels.host && f.levels.device === p.levels.device && f.levels.python === p.levels.python &&
    JSON.stringify(f.options.filter(([k, v]) => k || v)) === JSON.stringify(p.options);
  return PRESETS.find(same)?.id ?? "";
}

export const seconds = (ms: number): string => String(ms / 1000);

/** NaN: that is no number of seconds. */
export function milliseconds(text: string): number {
  return /^\s*\d+([.,]\d*)?\s*$/.test(text) ? Math.round(Number(text.trim().replace(",", ".")) * 1000) : NaN;
}

/** Seconds in words: 2 s, 1 min 30 s. */
export function spell(ms: number): string {
  const s = ms / 1000;
  if (s < 60) return `${Number(digits(s, 3))} s`;
  const rest = Math.round(s % 60);
  return rest ? `${Math.floor(s / 60)} min ${rest} s` : `${Math.floor(s / 60)} min`;
}

/* --- what is wrong with the form, where it is --- */

export interface Faults {
  targets?: string;
  duration?: string;
  delay?: string;
  run?: string;
  levels?: string;
  options: string[]; // one a row; "": none
}

function timeFault(text: string, { least, most }: { least: number; most: number }): string {
  const ms = milliseconds(text);
  if (Number.isNaN(ms)) return "A number of seconds, such as 2 or 0.5";
  return ms < least || ms > most ? `From ${spell(least)} to ${spell(most)}` : "";
}

const MOST_OPTIONS = 32;

function optionFault(rows: Form["options"], i: number): string {
  const [key, value] = rows[i]!;
  if (key === "" && value === "") return ""; // an empty row is none
  if (!/^\w{1,64}$/.test(key)) return key === "" ? "The option has no name" : "A name has letters, digits and _ only, at most 64";
  if (value.trim() === "") return "The option has no value";
  if (new TextEncoder().encode(value.trim()).length > 256) return "At most 256 bytes";
  if (rows.findIndex(([k]) => k === key) !== i) return `${key} stands there twice`;
  return i >= MOST_OPTIONS ? `At most ${MOST_OPTIONS} options` : "";
}

export function faultsOf(f: Form, targets: readonly string[]): Faults {
  const out: Faults = { options: f.options.map((_, i) => optionFault(f.options, i)) };
  if (targets.length === 0) out.targets = "Choose at least one";
  const [duration, delay] = [timeFault(f.duration, DURATION), timeFault(f.delay, DELAY)];
  if (duration) out.duration = duration;
  if (delay) out.delay = delay;
  if (f.run && !/^[A-Za-z0-9_-]{1,128}$/.test(f.run)) out.run = "Letters, digits, _ and - only, at most 128";
  if (f.levels.host + f.levels.device + f.levels.python === 0) out.levels = "With all of them off nothing is recorded";
  return out;
}

export const isSound = (f: Faults): boolean => !f.targets && !f.duration && !f.delay && !f.run && !f.levels && f.options.every((o) => o === "");

/** true and false, whole numbers, and all else as it is. */
export function optionValue(text: string): string | boolean | number {
  const t = text.trim();
  if (t === "true" || t === "false") return t === "true";
  const n = Number(t);
  return /^-?\d{1,16}$/.test(t) && Number.isSafeInteger(n) ? n : t;
}

export function wantedOf(f: Form, targets: readonly string[]): Wanted {
  const options: Options = Object.fromEntries(f.options.filter(([k]) => k !== "").map(([k, v]) => [k, optionValue(v)]));
  return { targets: [...targets], ...(f.run ? { run: f.run } : {}), duration_ms: milliseconds(f.duration), delay_ms: milliseconds(f.delay), levels: f.levels, options };
}

/* --- targets --- */

/** Those that are called as hosts of the run one came from, else all. */
export function preselected(targets: readonly Target[], hosts: readonly string[]): Set<string> {
  const named = new Set(hosts);
  const found = targets.filter((t) => named.has(t.name)).map((t) => t.name);
  return new Set(found.length ? found : targets.map((t) => t.name));
}

/** All words in the name or the address. */
export function matching(targets: readonly Target[], q: string): Target[] {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  return targets.filter((t) => words.every((w) => t.name.toLowerCase().includes(w) || t.address.toLowerCase().includes(w)));
}

export interface Estimate {
  text: string;
  tone: "" | "warning" | "bad";
}

/** Each target's profile has a limit of its own; the largest is what counts. */
export function estimate(targets: readonly Target[], ms: number, mode = "pull"): Estimate {
  if (targets.length === 0 || !(ms > 0)) return { text: "", tone: "" };
  const known = targets.filter((t) => t.bytes_per_s !== null && t.bytes_per_s > 0);
  const unknown = targets.length - known.length;
  if (known.length === 0)
    return { text: `How large it will be is not known before ${targets.length === 1 ? "the target" : "one of them"} has been captured once. A profile may have ${bytes(LIMIT_BYTES)} at most.${mode === "pull" && ms > PROBED_MS ? " Of so long a window a short one is taken first, to see what fits." : ""}`, tone: "" };
  const of = (t: Target): number => (t.bytes_per_s! * ms) / 1000;
  const largest = known.reduce((a, b) => (of(b) > of(a) ? b : a));
  const most = of(largest);
  const whose = targets.length > 1 ? `, the largest ${bytes(Math.round(most))} of ${largest.name}` : "";
  const sum = known.reduce((s, t) => s + of(t), 0);
  const said = `About ${bytes(Math.round(sum))}${whose}, as the last captures were; ${bytes(LIMIT_BYTES)} a profile is the limit.${unknown ? ` Of ${plural(unknown, "target")} it is not known.` : ""}`;
  const fits = Math.floor(((SAFE_BYTES / largest.bytes_per_s!) * 1000) / 100) * 100;
  const advice = fits >= DURATION.least ? ` ${spell(fits)} would fit.` : " Lower the levels.";
  if (most >= SAFE_BYTES && mode === "pull") return { text: `${said} That is too much: the window will be shortened to fit.${advice}`, tone: "warning" };
  if (most >= LIMIT_BYTES) return { text: `${said} That is too large: it would be lost, and may end the program.${advice}`, tone: "bad" };
  return most >= SAFE_BYTES ? { text: `${said} That is close to it.${advice}`, tone: "warning" } : { text: said, tone: "" };
}

/** What the button does. */
export function announce(targets: readonly string[], f: Form): string {
  const who = targets.length === 1 ? targets[0]! : plural(targets.length, "target");
  const ms = milliseconds(f.duration);
  const wait = milliseconds(f.delay);
  return `Capture ${who}${ms > 0 ? ` for ${spell(ms)}` : ""}${wait > 0 ? `, in ${spell(wait)}` : ""}`;
}

/* --- how far it is --- */

export const isOver = (c: Capture): boolean => c.phase === "done";

/** 0 … 1; null: the targets are writing, which tells nothing of itself. */
export function progressOf(c: Capture, now: number): number | null {
  if (isOver(c)) return 1;
  if (c.phase === "collecting" || c.ends_ms <= c.began_ms || now >= c.ends_ms) return null;
  return Math.min(1, Math.max(0, (now - c.began_ms) / (c.ends_ms - c.began_ms)));
}

export function progressWords(c: Capture, now: number): string {
  const done = c.targets.filter((t) => t.phase === "done").length;
  const of = c.targets.length > 1 ? `, ${done} of ${plural(c.targets.length, "target")} done` : "";
  if (isOver(c)) return outcomeWords(c);
  const starts = c.began_ms + c.delay_ms;
  if (c.phase === "waiting" && now < starts) return `begins in ${spell(Math.ceil((starts - now) / 1000) * 1000)}`;
  if (c.phase !== "collecting" && now < c.ends_ms) return `${c.phase === "waiting" ? "begins" : "recording"}, ends in ${spell(Math.ceil((c.ends_ms - now) / 1000) * 1000)}${of}`;
  return `${c.kind === "snapshot" ? "taking" : "recorded; collecting"} what was seen${of}`;
}

export const PHASES: Record<Phase, string> = { waiting: "waits", capturing: "records", collecting: "collects", done: "done" };

const OUTCOMES: Record<string, string> = {
  SUCCEEDED: "succeeded", EMPTY: "empty", BUSY: "was busy", TOO_LARGE: "too large", UNSUPPORTED: "cannot do it", UNREACHABLE: "not reached", TIMEOUT: "took too long",
  FAILED: "failed", CANCELLED: "cancelled", PARTIAL: "in part",
};

export const outcomeOf = (t: Pick<TargetResult, "phase" | "outcome">): string => (t.outcome ? OUTCOMES[t.outcome] ?? t.outcome.toLowerCase() : PHASES[t.phase] ?? t.phase);

/** The colour of an outcome: never the only sign of it. */
export function toneOf(outcome: string | null): "" | "good" | "warning" | "bad" {
  if (outcome === null) return "";
  if (outcome === "SUCCEEDED") return "good";
  return outcome === "PARTIAL" || outcome === "CANCELLED" || outcome === "EMPTY" || outcome === "BUSY" ? "warning" : "bad";
}

const succeeded = (c: Capture): TargetResult[] => c.targets.filter((t) => t.outcome === "SUCCEEDED");

/** Of the whole: a sentence. */
export function outcomeWords(c: Capture): string {
  const good = succeeded(c).length;
  const all = c.targets.length;
  const size = c.targets.reduce((s, t) => s + (t.outcome === "SUCCEEDED" ? t.bytes ?? 0 : 0), 0);
  const sized = size > 0 ? `, ${bytes(size)}` : "";
  switch (c.outcome) {
    case "SUCCEEDED": return `${all === 1 ? "captured" : `all ${plural(all, "target")} captured`}${sized}`;
    case "PARTIAL": return `${good} of ${plural(all, "target")} captured${sized}`;
    case "CANCELLED": return good > 0 ? `ended early: ${good} of ${plural(all, "target")} kept${sized}` : "cancelled, nothing kept";
    case "FAILED": return all === 1 ? "no profile" : "no profile of any target";
    default: return "";
  }
}

/** A profile of it is in the list of runs. */
export const isThere = (c: Capture): boolean => succeeded(c).length > 0;

export const runHrefOf = (root: string, c: Capture): string => `${root}${succeeded(c).length === 1 && isOver(c) ? "overview_page" : "run"}?run=${encodeURIComponent(c.run)}`;

export const failedTargets = (c: Capture): string[] => c.targets.filter((t) => t.phase === "done" && t.outcome !== "SUCCEEDED").map((t) => t.target);

const isTime = (run: string): boolean => /^\d{4}(_\d\d){5}$/.test(run);

/** The same again, of those that failed. It is another moment: a run of its own, unless nothing is in the first. */
export function retryOf(c: Capture, targets: readonly Target[]): Wanted | null {
  const known = new Set(targets.map((t) => t.name));
  const again = failedTargets(c).filter((t) => known.has(t));
  if (!isOver(c) || c.kind === "snapshot" || again.length === 0) return null;
  return { targets: again, ...(isThere(c) || isTime(c.run) ? {} : { run: c.run }), duration_ms: c.duration_ms, delay_ms: 0, levels: c.levels, options: c.options };
}

export function levelWords(l: Levels): string {
  const on = (n: number): string => (n > 0 ? "on" : "off");
  return `hosts ${(HOST_LEVELS[l.host] ?? String(l.host)).toLowerCase()}, devices ${on(l.device)}, Python ${on(l.python)}`;
}
