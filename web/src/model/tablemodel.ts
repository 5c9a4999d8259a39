// Rows of a report's table in the order and choice that was asked for. Works on indices, so that
// 50,000 rows cost one typed array.
import type { Cell, Column, Table } from "../api/report";
import { orderBy } from "./order";
import { Pattern } from "./regex";
import { asNumber, parseAmount, show, sum } from "./units";

export interface Sort {
  column: string;
  descending: boolean;
}

export function parseSort(text: string | null): Sort | null {
  if (!text) return null;
  return text.startsWith("-") ? { column: text.slice(1), descending: true } : { column: text, descending: false };
}

export function formatSort(s: Sort | null): string {
  return s ? `${s.descending ? "-" : ""}${s.column}` : "";
}

export function isNumeric(c: Column): boolean {
  return c.type === "number" || c.type === "bytes";
}

/* --- filter: word -word col:word col>10us "two words" /regular.*expression/ --- */

type Operator = ":" | "=" | ">" | "<" | ">=" | "<=";

export interface Term {
  column: number; // < 0: any
  not: boolean;
  op: Operator;
  text: string; // folded
  amount: number;
  pattern: Pattern | null; // /such/
}

export interface Filter {
  terms: Term[];
  errors: string[]; // for the person who types
}

const TERM = /(-?)(?:([\p{L}_][\p{L}\d_%/.#-]*?)(:|>=|<=|=|>|<))?(?:"([^"]*)"?|(\S+))/gu;

const squash = (s: string): string => s.toLowerCase().replace(/[^\p{L}\d]+/gu, "");

/** By id, by label, or by the only one that begins so or, failing that, holds it. */
export function findColumn(columns: readonly Column[], name: string): number {
  const want = squash(name);
  if (want === "") return -1;
  const names = columns.map((c) => [squash(c.id), squash(c.label)] as const);
  for (const fits of [
    (n: string) => n === want,
    (n: string) => n.startsWith(want),
    (n: string) => n.includes(want),
  ]) {
    const at = names.findIndex(([id, label]) => fits(id) || fits(label));
    if (at >= 0) return at;
  }
  return -1;
}

/** /core_[0-3]/ is a regular expression; null: a plain word. */
function patternOf(word: string, errors: string[]): Pattern | null {
  if (word.length < 3 || !word.startsWith("/") || !word.endsWith("/")) return null;
  try {
    return new Pattern(word.slice(1, -1));
  } catch (e) {
    errors.push(`“${word}” is no regular expression that can be used here, ${e instanceof Error ? e.message : ""}`);
    return null;
  }
}

export function parseFilter(text: string, columns: readonly Column[]): Filter {
  const terms: Term[] = [];
  const errors: string[] = [];
  for (const m of text.matchAll(TERM)) {
    const value = m[4] ?? m[5] ?? "";
    let column = -1;
    let op = (m[3] ?? ":") as Operator;
    let word = value;
    if (m[2] !== undefined) {
      column = findColumn(columns, m[2]);
      if (column < 0 && op === ":") {
        word = `${m[2]}:${value}`; // names have colons too
      } else if (column < 0) {
        errors.push(`no column “${m[2]}”`);
        continue;
      }
    }
    if (word === "" && column < 0) continue;
    const unit = column >= 0 ? columns[column]!.unit : "";

    const amount = op === ":" ? NaN : parseAmount(word, unit);
    if (op !== ":" && op !== "=" && Number.isNaN(amount)) {
      errors.push(`“${word}” is no amount${unit ? ` in ${unit}` : ""}`);
      continue;
    }
    const pattern = op === ":" ? patternOf(word, errors) : null;
    terms.push({ column, not: m[1] === "-", op, text: word.toLowerCase(), amount, pattern });
  }
  return { terms, errors };
}

function holds(t: Term, cell: Cell | undefined, c: Column): boolean {
  if (t.op === ":") {
    if (cell === null || cell === undefined) return t.text === "n/a" || t.text === "null";
    const raw = typeof cell === "string" ? cell : isNumeric(c) ? `${show(cell, c.unit)} ${String(cell)}` : show(cell, c.unit);
    return t.pattern ? t.pattern.test(raw) : raw.toLowerCase().includes(t.text);
  }
  if (t.op === "=" && Number.isNaN(t.amount)) return cell !== null && show(cell, c.unit).toLowerCase() === t.text;
  const n = asNumber(cell);
  if (Number.isNaN(n)) return false;
  switch (t.op) {
    case ">": return n > t.amount;
    case "<": return n < t.amount;
    case ">=": return n >= t.amount;
    case "<=": return n <= t.amount;
    default: return n === t.amount || (typeof cell === "string" && cell.toLowerCase() === t.text);
  }
}

export function rowMatches(row: readonly Cell[], columns: readonly Column[], filter: Filter): boolean {
  return filter.terms.every((t) => {
    if (t.column >= 0) return holds(t, row[t.column], columns[t.column]!) !== t.not;
    const any = columns.some((c, i) => (c.type === "text" || c.type === "op" || typeof row[i] === "string") && holds(t, row[i], c));
    return any !== t.not;
  });
}

/** Which rows, as they stand. */
export function choose(table: Pick<Table, "columns" | "rows">, filter: Filter): Uint32Array {
  const { columns, rows } = table;
  const chosen = new Uint32Array(rows.length);
  let n = 0;
  if (filter.terms.length === 0) for (; n < rows.length; n++) chosen[n] = n;
  else for (let i = 0; i < rows.length; i++) if (rowMatches(rows[i]!, columns, filter)) chosen[n++] = i;
  return chosen.subarray(0, n);
}

/** These rows in order. Missing values come last either way; equal ones keep their order. */
export function sorted(table: Pick<Table, "columns" | "rows">, chosen: Uint32Array, sort: Sort | null): Uint32Array {
  const at = sort ? table.columns.findIndex((c) => c.id === sort.column) : -1;
  return at < 0 ? chosen : orderBy(table.rows, chosen, at, sort!.descending);
}

export function arrange(table: Pick<Table, "columns" | "rows">, filter: Filter, sort: Sort | null): Uint32Array {
  return sorted(table, choose(table, filter), sort);
}

const SUMMABLE = /^(ps|ns|us|ms|s|bytes|flop|count)$/;

/** Whether the values of a column may be added up; averages, extremes and ranks may not. */
export function summable(c: Column): boolean {
  return isNumeric(c) && SUMMABLE.test(c.unit) && !/(^|_)(avg|mean|min|max|p\d+|rank|begin|end|id|peak)(_|$)/.test(c.id);
}

/** The server says which columns add up; tables made here go by their columns. */
export function totals(table: Pick<Table, "columns" | "rows" | "totals">, order: ArrayLike<number>): (number | bigint | null)[] {
  return table.columns.map((c, i) =>
    (table.totals ? c.id in table.totals && c.unit !== "fraction" : summable(c)) ? sum((function* () { for (let k = 0; k < order.length; k++) yield table.rows[order[k]!]![i]; })()) : null,
  );
}

/* --- grouped by one column --- */

const FEW_VALUES = 0.8; // of the rows; a column whose values all differ makes no groups
const MOST_GROUPS = 5000;

/** Texts that several rows share. */
export function groupable(table: Pick<Table, "columns" | "rows">): number[] {
  const n = table.rows.length;
  if (n < 3) return [];
  return table.columns.flatMap((c, i) => {
    if (isNumeric(c)) return [];
    const seen = new Set<string>();
    for (const row of table.rows) {
      seen.add(show(row[i], c.unit));
      if (seen.size > Math.min(MOST_GROUPS, n * FEW_VALUES)) return [];
    }
    return seen.size > 1 ? [i] : [];
  });
}

/** The rows in `order`, one row a value of the column: how many, and the sums of what adds up. */
export function grouped(table: Table, order: ArrayLike<number>, by: number): Table {
  const c = table.columns[by]!;
  const added = table.columns.map((_, i) => i).filter((i) => {
    const x = table.columns[i]!;
    if (i === by || !isNumeric(x)) return false;
    return table.totals ? x.id in table.totals : summable(x);
  });
  const groups = new Map<string, { value: Cell; rows: number[] }>();
  for (let k = 0; k < order.length; k++) {
    const i = order[k]!;
    const value = table.rows[i]![by] ?? null;
    const key = value === null ? "\0" : String(value);
    const g = groups.get(key);
    if (g) g.rows.push(i);
    else groups.set(key, { value, rows: [i] });
  }
  const rows = [...groups.values()].map(({ value, rows: at }): Cell[] => [
    value, at.length, ...added.map((i) => sum((function* () { for (const r of at) yield table.rows[r]![i]; })())),
  ]);
  const weight = added.find((i) => table.columns[i]!.unit === "ps") ?? added[0];
  const first = weight === undefined ? "rows" : table.columns[weight]!.id;
  return {
    id: `${table.id}-by-${c.id}`, title: table.title, note: null, rows, total_rows: rows.length, rest: null, totals: null,
    columns: [{ ...c, type: "text" }, { id: "rows", label: "Rows", unit: "count", type: "number" }, ...added.map((i) => table.columns[i]!)],
    sort: { column: table.sort && added.some((i) => table.columns[i]!.id === table.sort!.column) ? table.sort.column : first, descending: true },
  };
}

/** The filter that leaves the rows of one group. */
export function groupFilter(q: string, c: Column, value: Cell): string {
  if (value === null) return `${q.trim()} ${c.id}:n/a`.trim();
  const text = show(value, c.unit);
  // A quotation mark cannot be written: what stands before it has to do.
  const quoted = text.includes('"') ? `:"${text.slice(0, text.indexOf('"'))}"` : `="${text}"`;
  return `${q.trim()} ${c.id}${quoted}`.trim();
}

/* --- taking it away --- */

function csvCell(text: string): string {
  // A spreadsheet runs what begins so.
  const safe = /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function toCsv(columns: readonly Column[], rows: Iterable<readonly Cell[]>, picked: readonly number[]): string {
  const head = picked.map((i) => csvCell(columns[i]!.unit && columns[i]!.unit !== "count" ? `${columns[i]!.id} (${columns[i]!.unit})` : columns[i]!.id));
  const lines = [head.join(",")];
  for (const row of rows) lines.push(picked.map((i) => (row[i] === null || row[i] === undefined ? "" : csvCell(String(row[i])))).join(","));
  return `${lines.join("\r\n")}\r\n`;
}

/** Names are text in Markdown too: nothing in them becomes markup. */
export function markdownText(text: string): string {
  return text.replace(/[\\`*_{}[\]<>()#|~!&]/g, (c) => `\\${c}`).replace(/\s+/g, " ");
}

export function toMarkdown(columns: readonly Column[], rows: Iterable<readonly Cell[]>, picked: readonly number[]): string {
  const line = (cells: string[]): string => `| ${cells.join(" | ")} |`;
  const out = [
    line(picked.map((i) => markdownText(columns[i]!.label))),
    line(picked.map((i) => (isNumeric(columns[i]!) ? "---:" : "---"))),
  ];
  for (const row of rows) out.push(line(picked.map((i) => markdownText(show(row[i], columns[i]!.unit)))));
  return `${out.join("\n")}\n`;
}
