// Operands and users of an op, from the report that draws its surroundings.
import type { Cell, Report } from "../api/report";
import type { EventDetails } from "../api/types";
import { headOf } from "./colour";
import { asNumber } from "./units";

export interface NearOp {
  name: string;
  opcode: string;
  shape: string;
  ran: boolean; // as an op of its own, so that it has events
}

export interface Near {
  operands: NearOp[];
  users: NearOp[];
  more: number; // that are not listed
}

/** An instruction's name as graphs have it. */
export const plainOp = (name: string): string => headOf(name).replace(/^%/, "").trim();

/** The op that an event is a run of; null: of none that a program is known of. */
export function opOfEvent(d: EventDetails): { op: string; program: string } | null {
  const arg = (name: string): string => d.args.find((a) => a.name === name)?.value ?? "";
  const program = arg("program_id") || /\((\d+)\)$/.exec(arg("hlo_module"))?.[1] || "";
  const op = arg("hlo_op") || (arg("hlo_category") || arg("symbol_id") ? d.display_name || d.name : "");
  return op && (program || arg("hlo_module")) ? { op: plainOp(op), program } : null;
}

/** null: the report is about another op, as the program has none of this name. */
export function nearOf(r: Report, op: string): Near | null {
  const nodes = r.tables.find((t) => t.id === "nodes");
  const edges = r.tables.find((t) => t.id === "edges");
  const at = (t: typeof nodes, id: string): number => t?.columns.findIndex((c) => c.id === id) ?? -1;
  const text = (v: Cell | undefined): string => (v === null || v === undefined ? "" : String(v));
  if (!nodes || !edges) return null;
  const [name, opcode, shape, time] = ["op", "opcode", "shape", "self_time"].map((id) => at(nodes, id)) as [number, number, number, number];
  const byName = new Map(nodes.rows.map((row) => [text(row[name]), row]));
  const own = byName.get(op);
  if (!own || asNumber(own[at(nodes, "distance")]) !== 0) return null;
  const [from, to] = [at(edges, "from"), at(edges, "to")];
  const ends = (end: number, other: number): NearOp[] =>
    [...new Set(edges.rows.filter((e) => text(e[end]) === op).map((e) => text(e[other])))].map((n) => {
      const row = byName.get(n);
      return { name: n, opcode: text(row?.[opcode]), shape: text(row?.[shape]), ran: row?.[time] !== null && row?.[time] !== undefined };
    });
  const rest = (id: string): number => asNumber(own[at(nodes, id)]) || 0;
  return { operands: ends(to, from), users: ends(from, to), more: rest("more_operands") + rest("more_users") };
}
