// The shapes of docs/api.md.
import type { Int } from "./json";

export interface Runs {
  location: string;
  runs: RunRow[];
  total: number;
  total_exact: boolean; // false: some folders have not been looked into
  looked?: number; // of total, those that were looked into: in other orders the rest is last
  figures_limit?: number; // bytes of a run whose figures come by themselves; 0: none do
  next: string | null;
  cut: string | null; // why the listing stopped short
  joins?: RunJoin[]; // of the runs that are listed
  empty: { reason?: string; read: string; found: string; expected: string } | null;
}

/** Runs that may be one capture. */
export interface RunJoin {
  run: string;
  hosts: number;
  span_ms: number;
}

export interface RunRow {
  run: string;
  captured_ms: number | null;
  captured_from: "name" | "mtime";
  hosts: number;
  bytes: number;
  state: "ready" | "empty" | "unreadable";
  note: string;
  kind?: string | null; // how the capture was begun
  facts?: RunFacts | null; // null: not known yet
}

/** Figures of a run, by the ids of metrics. */
export interface RunFacts {
  device_type: string | null;
  cores: number | null;
  step_time_mean: number | null; // ps
  mxu_utilization: number | null;
  peak_memory: number | null; // bytes
  findings_p0: number | null;
  findings_p1: number | null;
  findings_p2: number | null;
  dropped_events: number | null;
  capture_kind: string | null;
  run_kind: string | null;
  workload: string | null;
  hosts: number | null;
  expected_hosts: number | null;
  devices: number | null;
  expected_devices: number | null;
  why: Partial<Record<string, string>>; // of what is null
  notes: Partial<Record<string, string>>; // beside numbers
}

export interface Run {
  run: string;
  captured_ms: number | null;
  location: string | null; // null: it was uploaded
  expires_ms?: number | null; // of an uploaded file: until when it is there
  note?: string;
  decoder?: string; // what reads it: product and version
  captured_from?: "name" | "mtime";
  kind?: string | null;
  facts?: RunFacts | null;
  hosts: Host[];
}

export interface Host {
  host: string;
  bytes: number;
  compressed: boolean;
  modified_ms: number;
  state: "ready" | "unreadable" | "loading" | "resident";
  note: string;
}

export interface Tracks {
  run: string;
  host: string;
  begin_ps: Int;
  end_ps: Int;
  events: number;
  start_wall_ns: string | null;
  loading: boolean;
  bytes_done: number;
  bytes_total: number;
  planes_done: number;
  planes_total: number;
  partial: boolean;
  damage: { offset: number; detail: string } | null;
  planes: Plane[]; // of one page
  lines_total?: number; // of the whole profile
  rows_total?: number; // planes and lines that match
  rows?: number; // of these, on this page
  next?: string | null;
}

export interface Plane {
  plane: number;
  name: string;
  state: "waiting" | "loading" | "ready" | "failed";
  events: number;
  kind: "device" | "host" | "other";
  lines_total?: number;
  lines: Line[];
}

export interface Line {
  line: number;
  id: Int;
  name: string;
  events: number;
  lanes: number;
  begin_ps: Int;
  end_ps: Int;
  derived: boolean;
  how?: string; // a derived line was made
  odd: number;
  overflow: number;
}

export interface Argument {
  name: string;
  value: string | null;
  type: string;
  bytes?: number;
  cut?: boolean;
  from: "event" | "metadata";
}

export interface Flow {
  direction: "in" | "out";
  category: string;
  ids: Int[];
  line: number;
  begin_ps: Int;
}

export interface EventDetails {
  id: Int;
  name: string;
  display_name: string;
  line: number;
  line_name: string;
  plane: number;
  plane_name: string;
  derived?: boolean;
  lane: number;
  begin_ps: Int;
  duration_ps: Int;
  self_ps: Int | null;
  occurrences: Int | null;
  args: Argument[];
  args_cut: boolean;
  flows: Flow[];
  previous: Int | null;
  next: Int | null;
}

export interface SearchAnswer {
  q: string;
  total: number;
  lines: { line: number; count: number }[];
  hits: Hit[];
  more: boolean;
  loading: boolean;
}

export interface Hit {
  id: Int;
  line: number;
  lane: number;
  name: string;
  begin_ps: Int;
  duration_ps: Int;
}

export interface CurveAnswer {
  line: number;
  events: number;
  looked: number; // of them
  stats?: string[]; // without a statistic in the question
  series: { name: string; values: number; min: number; max: number; t: Int[]; v: Int[] }[];
  series_total?: number;
  loading: boolean;
}

export interface Aggregate {
  t0_ps: Int;
  t1_ps: Int;
  events: number;
  names: number;
  total_ps: Int;
  self_ps: Int;
  rows: AggregateRow[];
  rest: { names: number; count: number; total_ps: Int; self_ps: Int };
  loading: boolean;
}

export interface AggregateRow {
  name: string;
  plane: number;
  count: number;
  total_ps: Int;
  self_ps: Int;
  min_ps: Int;
  max_ps: Int;
  mean_ps: Int;
  p50_ps: Int;
  p99_ps: Int;
  longest_id: Int;
  approximate?: boolean;
}

export interface Progress {
  state: "waiting" | "indexing" | "decoding" | "ready" | "failed";
  bytes_done: number;
  bytes_total: number;
  events: number;
  planes_done: number;
  planes_total: number;
  error: string | { detail?: string } | null;
  hosts_done?: number; // of a run of several hosts, put together here
  hosts_total?: number;
}
