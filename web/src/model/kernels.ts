// What the page of custom kernels makes of its report: which kernels and runs there are, what a run
// did, and two of them beside each other.
import { big } from "../api/json";
import type { Cell, Column, Report, Table } from "../api/report";
import { percent } from "./format";
import { asNumber, show, signed } from "./units";

export interface Kernel {
  op: string;
  program: string;
  time: Cell;
  runs: number;
  recorded: number;
}

export interface KernelRun {
  number: string;
  host: string;
  time: Cell;
  inside: string; // what is told of it; "": nothing
  shown: boolean;
  begin: Cell;
}

export interface Cause {
  id: string;
  label: string;
  time: Cell; // null: it is not told
  share: number; // of the run
  recorded: number; // of what is recorded
  stall: boolean;
  from: string;
  definition: string;
  reason: string;
}

const text = (v: Cell | undefined): string => (v === null || v === undefined ? "" : String(v));

const table = (r: Report, id: string): Table | undefined => r.tables.find((t) => t.id === id);

/** Rows of a table by the ids of their columns; none where there is no such table. */
function rowsOf<T>(r: Report, id: string, make: (of: (column: string) => Cell) => T): T[] {
  const t = table(r, id);
  if (!t) return [];
  const at = new Map(t.columns.map((c, i) => [c.id, i]));
  return t.rows.map((row) => make((column) => row[at.get(column) ?? -1] ?? null));
}

export const kernelsOf = (r: Report): Kernel[] => rowsOf(r, "calls", (of) => ({
  op: text(of("op")), program: text(of("program_id")), time: of("time"), runs: asNumber(of("occurrences")), recorded: asNumber(of("recorded")),
}));

/** The one that the page is about: two programs may have ops of one name. */
export function shownKernel(r: Report): Kernel | null {
  const of = (id: string): string => text(r.metrics.find((m) => m.id === id)?.value);
  const named = kernelsOf(r).filter((k) => k.op === of("kernel_name"));
  return named.find((k) => k.program === of("kernel_program")) ?? named[0] ?? null;
}

export const runsOf = (r: Report): KernelRun[] => rowsOf(r, "runs", (of) => ({
  number: text(of("occurrence")), host: text(of("first_host")), time: of("duration_ps"), inside: text(of("inside")), shown: of("shown") === true, begin: of("first_begin_ps"),
}));

export const causesOf = (r: Report): Cause[] => rowsOf(r, "stalls", (of) => ({
  id: text(of("id")), label: text(of("cause")), time: of("time"), share: asNumber(of("share")), recorded: asNumber(of("recorded_share")), stall: of("stall") === true,
  from: text(of("from")), definition: text(of("definition")), reason: text(of("reason")),
}));

/** As it stands within a sentence. */
export const inSentence = (label: string): string => label.charAt(0).toLowerCase() + label.slice(1);

/** Causes that are not told, by why. */
export function untold(causes: readonly Cause[]): { reason: string; labels: string[] }[] {
  const by = new Map<string, string[]>();
  for (const c of causes) if (c.time === null && c.reason) by.set(c.reason, [...(by.get(c.reason) ?? []), c.label]);
  return [...by].map(([reason, labels]) => ({ reason, labels }));
}

/** The run that the page is about: by its row, or else by its first figure. */
export const shownRun = (r: Report): KernelRun | null => runsOf(r).find((x) => x.shown) ?? null;

/** A span of a chart over the run, as a range of the session; null: it is not known when the run began. */
export function rangeOf(r: Report, points: readonly (readonly Cell[])[], a: Cell | undefined, b: Cell | undefined): { t0: bigint; t1: bigint } | null {
  const begin = shownRun(r)?.begin ?? null;
  if (begin === null || typeof begin === "string" || typeof begin === "boolean" || points.length === 0) return null;
  const [low, high] = [Math.min(asNumber(a), asNumber(b)), Math.max(asNumber(a), asNumber(b))];
  if (Number.isNaN(low) || Number.isNaN(high)) return null;
  const wide = points.length > 1 ? asNumber(points[1]![0]) - asNumber(points[0]![0]) : 1;
  return { t0: big(begin) + BigInt(Math.round(low)), t1: big(begin) + BigInt(Math.round(high + Math.max(1, wide))) };
}

/* --- two runs of kernels --- */

export interface Versus {
  said: string;
  tone: "good" | "bad" | "";
  warning: string; // what is compared is not all of the runs
  times: Table;
  units: Table;
}

const value = (r: Report, id: string): Cell => r.metrics.find((m) => m.id === id)?.value ?? null;

const number = (id: string, label: string, unit: string, definition: string): Column => ({ id, label, unit, type: "number", definition });

/** What this one has more than the other. */
const more = (a: Cell, b: Cell): number | null => {
  const d = asNumber(a) - asNumber(b);
  return Number.isNaN(d) ? null : d;
};

interface Line {
  what: string;
  name: string;
  a: Cell;
  b: Cell;
  shareA: Cell;
  shareB: Cell;
}

const over = (v: Cell, whole: number): number | null => {
  const x = asNumber(v) / whole;
  return Number.isFinite(x) ? x : null;
};

/** Rows of both by name: those that only one has stand last. */
function pairs<T>(a: readonly T[], b: readonly T[], key: (x: T) => string): [T | null, T | null][] {
  const other = new Map(b.map((x) => [key(x), x]));
  const out: [T | null, T | null][] = a.map((x) => {
    const y = other.get(key(x)) ?? null;
    other.delete(key(x));
    return [x, y];
  });
  return [...out, ...[...other.values()].map((y): [T | null, T | null] => [null, y])];
}

/** How much of the run is recorded, ps. */
const recordedOf = (r: Report): number => asNumber(value(r, "kernel_run_time")) * asNumber(value(r, "kernel_recorded_fraction"));

function timesOf(a: Report, b: Report): Line[] {
  const [ta, tb] = [recordedOf(a), recordedOf(b)];
  const lines: Line[] = [{ what: "run", name: "the run", a: value(a, "kernel_run_time"), b: value(b, "kernel_run_time"), shareA: null, shareB: null }];
  for (const [x, y] of pairs(causesOf(a), causesOf(b), (c) => c.id))
    if (asNumber(x?.time) || asNumber(y?.time)) {
      const of = (c: Cause | null): number | null => (!c || Number.isNaN(c.recorded) ? null : c.recorded);
      lines.push({ what: (x ?? y)!.id === "unrecorded" ? "rest" : "cause", name: (x ?? y)!.label, a: x?.time ?? null, b: y?.time ?? null, shareA: of(x), shareB: of(y) });
    }
  const region = (r: Report) => rowsOf(r, "regions", (of) => ({ name: text(of("region")), line: text(of("line")), time: of("time") }));
  for (const [x, y] of pairs(region(a), region(b), (c) => `${c.line}\0${c.name}`))
    lines.push({ what: "region", name: (x ?? y)!.name, a: x?.time ?? null, b: y?.time ?? null, shareA: over(x?.time ?? null, ta), shareB: over(y?.time ?? null, tb) });
  return lines;
}

function unitsOf(a: Report, b: Report): Cell[][] {
  const unit = (r: Report) => rowsOf(r, "unit_times", (of) => ({ name: text(of("unit")), share: of("recorded_share"), instructions: of("instructions"), schedule: of("schedule") }));
  return pairs(unit(a), unit(b), (u) => u.name).map(([x, y]): Cell[] => [
    (x ?? y)!.name, x?.share ?? null, y?.share ?? null, more(x?.share ?? null, y?.share ?? null), x?.instructions ?? null, y?.instructions ?? null,
    more(x?.instructions ?? null, y?.instructions ?? null), x?.schedule ?? null, y?.schedule ?? null,
  ]);
}

function sentence(lines: readonly Line[], cut: boolean): Pick<Versus, "said" | "tone"> {
  const [ta, tb] = [asNumber(lines[0]!.a), asNumber(lines[0]!.b)];
  const d = ta - tb;
  if (!(tb > 0) || Number.isNaN(d)) return { said: "How long they took is not told.", tone: "" };
  const same = Math.abs(d) < 0.005 * tb;
  const parts = lines.filter((l) => l.what === "cause" && more(l.a, l.b) !== null).map((l) => ({ name: l.name, d: more(l.a, l.b)! }));
  const most = parts.reduce<{ name: string; d: number } | null>((m, p) => (Math.sign(p.d) === Math.sign(d) && Math.abs(p.d) > Math.abs(m?.d ?? 0) ? p : m), null);
  const took = `This one takes ${show(lines[0]!.a, "ps")}, the other ${show(lines[0]!.b, "ps")}`;
  return {
    said: same ? `${took}: as good as the same.` : `${took}: ${d > 0 ? "+" : "−"}${percent(Math.abs(d), tb)}.${most && !cut ? ` The largest part: ${inSentence(most.name)}, ${signed(Math.round(most.d), "ps")}.` : ""}`,
    tone: same ? "" : d > 0 ? "bad" : "good",
  };
}

/** a is the one that the page is about, b the other, as what was before: a base is, and A of Compare. */
export function versus(a: Report, b: Report): Versus {
  const lines = timesOf(a, b);
  const [ra, rb] = [asNumber(value(a, "kernel_recorded_fraction")), asNumber(value(b, "kernel_recorded_fraction"))];
  const cut = ra < 0.9 || rb < 0.9;
  return {
    ...sentence(lines, cut),
    warning: cut ? `Of this run ${show(ra, "fraction")} is recorded, of the other ${show(rb, "fraction")}: times of causes and regions are of these parts only.` : "",
    times: {
      id: "versus", title: "Times of both", note: null, total_rows: lines.length, rest: null, totals: {}, sort: null,
      columns: [
        { id: "name", label: "Part", unit: "", type: "text" }, { id: "what", label: "What it is", unit: "", type: "text", definition: "the run, what it did, or a region of it" },
        number("one", "This", "ps", "of the run that the page is about"), number("other", "Other", "ps", "of the other"), number("difference", "This less other", "ps", ""),
        number("one_share", "Share of this", "fraction", "of what is recorded of it"), number("other_share", "Share of the other", "fraction", "of what is recorded of it"),
        number("share_difference", "Shares apart", "fraction", "share of this less that of the other"),
      ],
      rows: lines.map((l): Cell[] => [l.name, l.what, l.a, l.b, more(l.a, l.b), l.shareA, l.shareB, more(l.shareA, l.shareB)]),
    },
    units: {
      id: "versus_units", title: "Units of both", note: null, ...unitTable(unitsOf(a, b)),
    },
  };
}

function unitTable(rows: Cell[][]): Pick<Table, "columns" | "rows" | "total_rows" | "rest" | "totals" | "sort"> {
  return {
    rows, total_rows: rows.length, rest: null, totals: {}, sort: null,
    columns: [
      { id: "unit", label: "Unit", unit: "", type: "text" },
      number("one", "This busy", "fraction", "of the time from its first to its last instruction"), number("other", "Other busy", "fraction", "likewise"), number("difference", "This less other", "fraction", ""),
      number("one_count", "This, instructions", "count", ""), number("other_count", "Other, instructions", "count", ""), number("count_difference", "Instructions apart", "count", ""),
      number("one_schedule", "This, schedule", "fraction", "how full the bundles are that it came by"), number("other_schedule", "Other, schedule", "fraction", "likewise"),
    ],
  };
}
