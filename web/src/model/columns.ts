// How wide the columns of a table are, and which ones show at first.
import type { Cell, Column, Table } from "../api/report";
import { unit } from "../layout/unit";
import { isNumeric } from "./tablemodel";
import { show } from "./units";

/** Columns that carry links and identity; they stand in the row's card, not in the table. */
const PLUMBING = /^(first_(begin|end|duration)(_ps)?|first_(plane|line|host|event)|begin_ps|end_ps|event_id|program_id|module_id|rank)$/;
/** Columns that few profiles fill, or few people want: the chooser has them. */
const RARE = /^(normalized_flop_rate|cmem_(read|write)_rate|energy|outside_compilation|autotuned)$/;
const SAMPLE = 200;

export function isPlumbing(c: Column): boolean {
  return PLUMBING.test(c.id);
}

/** Where rows have short names, the full ones are told when the pointer rests there. */
function isLongName(table: Pick<Table, "columns">, c: Column): boolean {
  return (c.id === "kernel" || c.id === "demangled") && table.columns.some((x) => x.id === "short_name");
}

/** What a cell means in full; "": what it shows. */
export function fullName(table: Pick<Table, "columns">, row: readonly Cell[], i: number): string {
  if (table.columns[i]!.id !== "short_name") return "";
  const of = (id: string): string => String(row[table.columns.findIndex((c) => c.id === id)] ?? "");
  return of("demangled") || of("kernel");
}

export interface Shown {
  columns: number[];
  empty: number[]; // hidden because no row has a value
}

/** `changed` are ids whose showing differs from what it would be. */
export function shownColumns(table: Pick<Table, "columns" | "rows">, changed: ReadonlySet<string>): Shown {
  const columns: number[] = [];
  const empty: number[] = [];
  const sample = table.rows;
  table.columns.forEach((c, i) => {
    const blank = sample.length > 0 && sample.every((r) => r[i] === null || r[i] === undefined || r[i] === "");
    const usual = !isPlumbing(c) && !RARE.test(c.id) && !blank && !isLongName(table, c);
    if (usual !== changed.has(c.id)) columns.push(i);
    else if (blank && !isPlumbing(c) && !RARE.test(c.id)) empty.push(i);
  });
  return { columns: inOrder(table, columns), empty };
}

const LONG_TEXT = 70; // characters; whole sentences stand last

/** As they come, but long texts last, so that numbers are in sight; what a row is about stays first. */
function inOrder(table: Pick<Table, "columns" | "rows">, picked: number[]): number[] {
  const rank = (i: number): number => {
    const c = table.columns[i]!;
    if (i === picked[0]) return 0;
    if (c.type !== "text") return 1;
    const sample = table.rows.slice(0, 40);
    const length = sample.reduce((a, r) => a + String(r[i] ?? "").length, 0) / Math.max(1, sample.length);
    return length > LONG_TEXT ? 2 : 1;
  };
  const ranks = new Map(picked.map((i) => [i, rank(i)]));
  return [...picked].sort((a, b) => ranks.get(a)! - ranks.get(b)! || a - b);
}

const charWidth = (): number => 7.6 * unit(); // px of an average character at 13 px
const PADDING = 26;

export function naturalWidth(c: Column, rows: readonly (readonly Cell[])[], at: number): number {
  let longest = 0;
  const step = Math.max(1, Math.floor(rows.length / SAMPLE));
  for (let i = 0; i < rows.length; i += step) {
    const text = show(rows[i]![at], c.unit);
    if (text.length > longest) longest = text.length;
  }
  const label = c.label.length * 6.6 * unit() + 16; // and the arrow of the order
  const numeric = isNumeric(c);
  const most = numeric ? 190 : c.type === "op" ? 240 : 280;
  return Math.round(Math.min(most * unit(), Math.max(longest * charWidth(), Math.min(label, (numeric ? 118 : 200) * unit()), 44)) + PADDING);
}

const COMMON = 24; // characters

/** How much of the beginning of a column's texts is the same everywhere, up to the end of a word, or of a folder. */
export function commonStart(rows: readonly (readonly Cell[])[], at: number): number {
  let common: string | null = null;
  for (const row of rows) {
    const v = row[at];
    if (v === null || v === undefined) continue;
    if (typeof v !== "string") return 0;
    if (common === null) common = v;
    let n = 0;
    while (n < common.length && common[n] === v[n]) n++;
    common = common.slice(0, n);
    if (common.length < COMMON) return 0;
  }
  if (common === null || new Set(rows.map((r) => r[at]).filter((v) => typeof v === "string")).size < 2) return 0;
  // Of a path the file's name stays whole.
  const word = common.includes("/") ? common.lastIndexOf("/") : Math.max(...["_", ".", " "].map((c) => common!.lastIndexOf(c)));
  return word + 1 >= COMMON ? word + 1 : 0;
}
