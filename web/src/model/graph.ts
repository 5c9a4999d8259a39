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

/** The program as files, whole: name, what it is, and the address below the project. */
export function programFiles(r: Report, run: string, program: string): { label: string; title: string; name: string; href: string }[] {
  const t = r.tables.find((x) => x.id === "modules");
  const [id, module] = [t?.columns.findIndex((c) => c.id === "program_id") ?? -1, t?.columns.findIndex((c) => c.id === "module") ?? -1];
  const row = t && id >= 0 && module >= 0 ? t.rows.find((x) => String(x[id]) === program) : undefined;
  const host = r.hosts[0];
  if (!row || !host) return [];
  const name = String(row[module]);
  return ([["Text", "HLO text of the program", "long_txt", "txt"], ["pb", "HLO protobuf of the program", "pb", "hlo.pb"], ["pbtxt", "HLO protobuf as text", "pbtxt", "pbtxt"]] as const)
    .map(([label, title, type, suffix]) => ({
      label, title, name: `${name.replace(/[^\w.-]+/g, "_")}.${suffix}`,
      href: `data/plugin/profile/data?${new URLSearchParams({ run, tag: "graph_viewer", host, module_name: name, type }).toString()}`,
    }));
}

/** The name that a piece of HLO text refers to, "%name" without the sign; "": it is none. */
export const referred = (piece: string): string => (/^%[\w.-]*\w$/.test(piece) ? piece.slice(1) : "");

/** A line of HLO text in pieces: each "%name" by itself. */
export const pieces = (line: string): string[] => line.split(/(%[\w.-]*\w)/);
