// Where a table of a report says which op a row is and when it ran first.
import { big, type Int } from "../api/json";
import type { Cell, Report, Table } from "../api/report";
import { asNumber } from "./units";

export interface OpColumns {
  op: number; // < 0: rows are no ops
  program: number;
  begin: number;
  plane: number;
  duration: number;
  host: number;
  event: number; // what events of the timeline are called, where that is not the op; < 0: none is
}

const find = (t: Pick<Table, "columns">, ...ids: string[]): number => {
  for (const id of ids) {
    const at = t.columns.findIndex((c) => c.id === id);
    if (at >= 0) return at;
  }
  return -1;
};

type Named = Pick<Table, "columns"> & { id?: string };

/** A kernel of a GPU, what a host thread did, an op of the host's input or of the framework, the op that receives a transfer. */
function eventColumn(t: Named): number {
  if (find(t, "grid") >= 0) return find(t, "kernel");
  if (find(t, "recv_done_stall") >= 0) return find(t, "recv_op");
  if (t.id === "gap_threads") return find(t, "event");
  if (t.id === "regions") return find(t, "name");
  return t.id === "input_ops" ? find(t, "op") : find(t, "operation");
}

/** Tables whose rows happened once, so that their time is how long that took. */
const ONCE = /^(pauses|steps|runs|programs)$/;

export function opColumns(t: Named): OpColumns {
  const named = find(t, "op", "hlo_op", "hlo_op_name", "op_name");
  const typed = t.columns.findIndex((c) => c.type === "op");
  return {
    op: typed >= 0 ? typed : find(t, "program_id") >= 0 ? named : -1,
    program: find(t, "program_id", "program"),
    begin: find(t, "first_begin_ps", "first_begin", "begin_ps"),
    plane: find(t, "first_plane"),
    duration: find(t, "first_duration_ps", "duration_ps", "duration", "latency", "mean_time", "avg_time", ...(ONCE.test(t.id ?? "") ? ["time"] : [])),
    host: find(t, "first_host", "host"),
    event: eventColumn(t),
  };
}

const text = (v: Cell | undefined): string => (v === null || v === undefined ? "" : String(v));

export interface OpId {
  op: string;
  program: string;
}

export function opOf(row: readonly Cell[], c: OpColumns): OpId {
  // A buffer is called after its op and a place in the op's result: fusion.1{0}.
  return { op: c.op < 0 ? "" : text(row[c.op]).replace(/\{[\d,]*\}$/, ""), program: c.program < 0 ? "" : text(row[c.program]) };
}

/** Ops of the framework are called by the last part of their path there. */
export const eventOf = (row: readonly Cell[], c: OpColumns): string => (c.event < 0 ? "" : text(row[c.event]).split("/").pop()!);

export function sameOp(a: OpId, b: OpId): boolean {
  return a.op !== "" && a.op === b.op && (a.program === "" || b.program === "" || a.program === b.program);
}

const whole = (v: Cell | undefined): Int | null =>
  typeof v === "bigint" ? v : typeof v === "number" && Number.isFinite(v) ? Math.round(v) : null;

export interface RowTime {
  begin: Int;
  duration: Int | null;
  host: string;
}

/** When the row happened first; null: it does not say. */
export function timeOf(row: readonly Cell[], c: OpColumns, unitOfDuration: string): RowTime | null {
  const begin = c.begin < 0 ? null : whole(row[c.begin]);
  if (begin === null) return null;
  const d = c.duration < 0 ? null : whole(row[c.duration]);
  const scale = unitOfDuration === "ns" ? 1000n : 1n;
  return { begin, duration: d === null ? null : big(d) * scale, host: c.host < 0 ? "" : text(row[c.host]) };
}

/** When the request happened that a row of another table is about: of several of that number the one as long. */
export function timeOfRequest(report: Report, t: Table, row: readonly Cell[]): RowTime | null {
  const requests = report.tables.find((x) => x.id === "requests");
  const [id, long] = [find(t, "request"), find(t, "latency")];
  if (!requests || requests === t || id < 0) return null;
  const [rid, rlong] = [find(requests, "request"), find(requests, "latency")];
  const same = requests.rows.filter((r) => r[rid] === row[id]);
  const found = same.find((r) => long >= 0 && r[rlong] === row[long]) ?? same[0];
  return found ? timeOf(found, opColumns(requests), "ps") : null;
}

/** Of all tables of a report, the row about this op that is first. */
export function findOp(report: Report, id: OpId): { table: Table; row: readonly Cell[]; columns: OpColumns } | null {
  if (id.op === "") return null;
  for (const table of report.tables) {
    const columns = opColumns(table);
    if (columns.op < 0) continue;
    const row = table.rows.find((r) => sameOp(id, opOf(r, columns)));
    if (row) return { table, row, columns };
  }
  return null;
}

/** The column that says how heavy a row is: self time, else time, else the first amount. */
export function weightColumn(columns: Table["columns"]): number {
  const ids = ["self_time", "total_self_time", "self_ps", "total_time", "time", "device_time", "duration"];
  for (const id of ids) {
    const at = columns.findIndex((c) => c.id === id);
    if (at >= 0) return at;
  }
  const ps = columns.findIndex((c) => c.unit === "ps");
  return ps >= 0 ? ps : columns.findIndex((c) => c.type === "number" || c.type === "bytes");
}

export function amount(row: readonly Cell[], at: number): number {
  return at < 0 ? NaN : asNumber(row[at]);
}
