// Columns of the list of runs: what each says of a run, and which of them are there.
import type { RunFacts, RunRow } from "../api/types";
import { natural } from "./units";

export type ColumnId =
  | "run" | "captured" | "kind" | "hosts" | "devices" | "device" | "size" | "step" | "history" | "mfu" | "memory" | "findings" | "dropped" | "cores"
  | "program" | "work" | "state";

export interface RunColumn {
  id: ColumnId;
  label: string;
  title: string;
  number?: boolean;
  unit?: string;
  fact?: keyof RunFacts & string; // that it shows
  wide?: boolean; // no room for it on a small screen
  rare?: boolean; // the chooser has it
  fixed?: boolean; // cannot be hidden
  unsorted?: boolean; // the server has no such order
}

export const columns: readonly RunColumn[] = [
  { id: "run", label: "Run", title: "Name of the run", fixed: true },
  { id: "state", label: "State", title: "Whether it can be read" },
  { id: "captured", label: "Captured", title: "When it was captured" },
  { id: "kind", label: "Kind", title: "How the capture was begun: by the program itself, on demand, as a snapshot, or by a rule", wide: true },
  { id: "hosts", label: "Hosts", title: "Profiles in the run, of as many as there should be where that can be told", number: true, wide: true },
  { id: "devices", label: "Devices", title: "Devices in the profiles, of as many as there should be where that can be told", number: true, fact: "devices", wide: true },
  { id: "device", label: "Device", title: "Kind of the devices", fact: "device_type", wide: true },
  { id: "size", label: "Size", title: "Of its files", number: true },
  { id: "step", label: "Step time", title: "Mean of its steps", number: true, unit: "ps", fact: "step_time_mean" },
  { id: "history", label: "History", title: "Step times of the listed runs of the same program on as many devices of the same kind, in order of time", wide: true, unsorted: true },
  { id: "mfu", label: "MFU", title: "FLOP utilization: FLOP rate / peak FLOP rate", number: true, unit: "fraction", fact: "mxu_utilization", wide: true },
  { id: "memory", label: "Peak memory", title: "Most memory in use on a device", number: true, unit: "bytes", fact: "peak_memory", wide: true },
  { id: "findings", label: "Findings", title: "Rules of the suggestions that apply, by priority", fact: "findings_p0", wide: true },
  { id: "dropped", label: "Dropped", title: "Events that the profiler says it dropped", number: true, unit: "count", fact: "dropped_events", wide: true },
  { id: "cores", label: "Cores", title: "Device cores in the profiles", number: true, unit: "count", fact: "cores", wide: true, rare: true },
  { id: "program", label: "Program", title: "The program that ran longest", fact: "workload", wide: true, rare: true },
  { id: "work", label: "Work", title: "Training or inference", fact: "run_kind", wide: true, rare: true },
];

/** What the server orders by first when a column is chosen: numbers from the greatest. */
export function firstWay(c: RunColumn): boolean {
  return Boolean(c.number) || c.id === "captured" || c.id === "findings";
}

const value = (r: RunRow, c: RunColumn): unknown => {
  if (c.id === "kind") return r.kind ?? null;
  return c.fact ? r.facts?.[c.fact] ?? null : 0;
};

/** No run says anything there: kinds nobody told, nothing dropped. Figures that are still to come keep their column. */
function isBlank(rows: readonly RunRow[], c: RunColumn, histories: ReadonlyMap<string, History>): boolean {
  if (c.id === "history") return histories.size === 0;
  if (c.id === "kind") return rows.every((r) => !r.kind);
  if (c.id === "dropped") return rows.every((r) => value(r, c) === 0 || (value(r, c) === null && !r.facts?.why["dropped_events"]));
  return false;
}

export interface ShownColumns {
  shown: RunColumn[];
  blank: RunColumn[]; // hidden as nothing stands there
}

/** `changed` are ids whose showing differs from what it would be. */
export function shownColumns(rows: readonly RunRow[], changed: ReadonlySet<string>, histories: ReadonlyMap<string, History>): ShownColumns {
  const blank = columns.filter((c) => !c.fixed && isBlank(rows, c, histories));
  const shown = columns.filter((c) => c.fixed || (!c.rare && !blank.includes(c)) !== changed.has(c.id));
  return { shown, blank: blank.filter((c) => !shown.includes(c)) };
}

/* --- step times of the same work --- */

export interface History {
  steps: number[]; // ps, in order of time
  runs: string[];
  at: number; // this run
}

const LEAST = 3; // runs; fewer are no history

/** Of each run that has one. Same: program, kind and number of devices, hosts. */
export function historiesOf(rows: readonly RunRow[]): Map<string, History> {
  const groups = new Map<string, RunRow[]>();
  for (const r of rows) {
    const f = r.facts;
    if (!f?.workload || !f.step_time_mean || r.captured_ms === null) continue;
    const key = JSON.stringify([f.workload, f.device_type, f.devices, r.hosts]);
    const group = groups.get(key);
    if (group) group.push(r);
    else groups.set(key, [r]);
  }
  const found = new Map<string, History>();
  for (const group of groups.values()) {
    if (group.length < LEAST) continue;
    group.sort((a, b) => a.captured_ms! - b.captured_ms! || (natural(a.run) < natural(b.run) ? -1 : 1));
    const steps = group.map((r) => r.facts!.step_time_mean!);
    const runs = group.map((r) => r.run);
    group.forEach((r, at) => found.set(r.run, { steps, runs, at }));
  }
  return found;
}

/** Points of a line in a box, the least at the bottom. One height where all are alike. */
export function sparkPoints(steps: readonly number[], width: number, height: number): [number, number][] {
  const least = Math.min(...steps);
  const span = Math.max(...steps) - least;
  return steps.map((s, i) => [
    steps.length < 2 ? width / 2 : (i * width) / (steps.length - 1),
    span > 0 ? height - ((s - least) * height) / span : height / 2,
  ]);
}
