// Rows that are chosen by a name in the address, about which the server then tells more.
import type { Cell, Table } from "../api/report";

/** Of a table: the column that has the name, and the argument. */
const PICKS: Record<string, readonly [column: string, arg: string]> = {
  kernels: ["kernel", "kernel"], runs: ["occurrence", "occurrence"], counters: ["counter", "counter"], chips: ["counter", "counter"], meanings: ["unit", "unit"],
  channels: ["key", "channel"], transfers: ["rendezvous", "collective"], collectives: ["collective", "collective"], occurrences: ["key", "occurrence"],
};

export interface RowPick {
  arg: string;
  nameOf: (row: readonly Cell[]) => string;
  more: (row: readonly Cell[]) => Record<string, string>; // arguments that go with it
  gone: Record<string, string>; // what they are when none is chosen
}

export function pickOf(t: Table): RowPick | null {
  const found = PICKS[t.id];
  const at = found ? t.columns.findIndex((c) => c.id === found[0]) : -1;
  // Kernels of TPUs have no launches that could be told.
  if (!found || at < 0 || (t.id === "kernels" && !t.columns.some((c) => c.id === "short_name"))) return null;
  // Runs of a kernel are numbered on each host.
  const host = t.id === "runs" ? t.columns.findIndex((c) => c.id === "first_host") : -1;
  // Another collective has other occurrences.
  if (found[1] === "collective") return { arg: "collective", nameOf: (row) => String(row[at] ?? ""), more: () => ({ occurrence: "" }), gone: { occurrence: "" } };
  return { arg: found[1], nameOf: (row) => String(row[at] ?? ""), more: (row) => (host < 0 ? {} : { on: String(row[host] ?? "") }), gone: host < 0 ? {} : { on: "" } };
}

/** The row that was clicked, in a table that may have come anew since: a name may have a row for each host, chip or sample. */
export function rowAgain(t: Table, clicked: readonly Cell[] | null): readonly Cell[] | null {
  if (!clicked) return null;
  return t.rows.find((r) => r === clicked) ?? t.rows.find((r) => r.length === clicked.length && r.every((v, i) => v === clicked[i])) ?? null;
}
