// The report of a tool (docs/api.md, "report"): one shape for all tools.
import type { Int } from "./json";

export type Cell = Int | string | boolean | null;

export interface Report {
  tool: string;
  title: string;
  question: string;
  hosts: string[];
  missing_hosts: MissingHost[];
  verdict: string | null;
  metrics: Metric[];
  tables: Table[];
  series: Series[];
  tree: Tree | null;
  text: string | null;
  notes: Note[];
  links?: { table: string; column: string }[];
  range?: { t0: Int; t1: Int; steps: string | null; label: string } | null; // the part of the run that it is about; null: all of it
}

export interface MissingHost {
  host: string;
  code: string;
  detail: string;
  offset?: number;
}

export interface Metric {
  id: string;
  label: string;
  unit: string;
  value: Int | string | null;
  reason: string | null; // why there is no value, and how to get one
  note: string | null;
  definition: string;
  spread: { min: Int | null; max: Int | null; sd?: Int | null; max_host?: string | null } | null;
}

export interface Column {
  id: string;
  label: string;
  unit: string;
  type: "number" | "text" | "bool" | "op" | "bytes";
  definition?: string | null;
}

export interface Table {
  id: string;
  title: string;
  note: string | null;
  columns: Column[];
  rows: Cell[][];
  total_rows: number;
  matched_rows?: number; // of the server's filter
  totals?: Record<string, Int> | null; // of all rows
  rest: Record<string, Int> | null;
  sort: { column: string; descending: boolean } | null;
}

export interface Series {
  id: string;
  title: string;
  x: { label: string; unit: string; type: "number" | "text" };
  y: { label: string; unit: string };
  kind: "stack" | "line" | "bar" | "scatter" | "heat";
  names: string[];
  points: Cell[][];
  total_points: number;
  reduced: boolean;
}

export interface Tree {
  id: string;
  title?: string;
  columns: Column[];
  nodes: { parent: number; name: string; values: Cell[] }[];
  total_nodes: number;
}

export interface Note {
  severity: "info" | "warning" | "error";
  code: string;
  text: string;
}

/** Of the report "tools": whether a tool has something to say about this run, and if not, why. */
export interface ToolState {
  tool: string;
  title: string;
  available: boolean;
  reason: string | null;
}

const list = <T>(x: T[] | null | undefined): T[] => (Array.isArray(x) ? x : []);

/** What a page may rely on, whatever an older server left out. */
export function asReport(got: Partial<Report>): Report {
  return {
    tool: got.tool ?? "", title: got.title ?? "", question: got.question ?? "",
    hosts: list(got.hosts), missing_hosts: list(got.missing_hosts), verdict: got.verdict ?? null,
    metrics: list(got.metrics), tables: list(got.tables), series: list(got.series),
    tree: got.tree ?? null, text: got.text ?? null, notes: list(got.notes), links: list(got.links), range: got.range ?? null,
  };
}
