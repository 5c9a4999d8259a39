// What the graph's page keeps in its address and reads from its report.
import type { Report } from "../api/report";

const TRAIL = 8;
const EXPANDED = 50;

/** A list of op names in the address; names of ops have no commas. */
export const namesOf = (list: string): string[] => list.split(",").filter(Boolean);

/** Adds what is not in the list, removes what is. */
export function flipName(list: string, name: string): string {
  const names = namesOf(list);
  return (names.includes(name) ? names.filter((n) => n !== name) : [...names, name].slice(-EXPANDED)).join(",");
}

/** The ops that one came by, each once, the last last. */
export function trailOf(list: string, from: string, to: string): string {
  const names = namesOf(list).filter((n) => n !== from && n !== to);
  return (from && from !== to ? [...names, from] : names).slice(-TRAIL).join(",");
}

/** Does an op of that kind move data without changing it? */
export const copyOf = (opcode: string): boolean => /^(copy|copy-start|copy-done|async-copy.*)$/.test(opcode);

/** Computations from the program's entry to the op's own, and the ops between them that call the next. */
export function graphPath(r: Report): { computations: string[]; ops: string[] } {
  const column = (id: string, name: string): string[] => {
    const t = r.tables.find((x) => x.id === id);
    const at = t?.columns.findIndex((c) => c.id === name) ?? -1;
    return t && at >= 0 ? t.rows.map((row) => String(row[at] ?? "")) : [];
  };
  const own = column("nodes", "computation")[0];
  return { computations: [...column("path", "computation"), ...(own ? [own] : [])], ops: column("path", "op") };
}

/** The name that a piece of HLO text refers to, "%name" without the sign; "": it is none. */
export const referred = (piece: string): string => (/^%[\w.-]*\w$/.test(piece) ? piece.slice(1) : "");

/** A line of HLO text in pieces: each "%name" by itself. */
export const pieces = (line: string): string[] => line.split(/(%[\w.-]*\w)/);
