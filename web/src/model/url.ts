// The state of a page as its query string: short, readable, and back again.
import { categories, palettes, type Category, type PaletteName } from "./colour";
import type { Range } from "./view";

/** What dragging does. */
export const modes = ["select", "pan", "zoom", "measure"] as const;
export type Mode = (typeof modes)[number];

/** What the panel below is about. */
export const tabs = ["details", "area", "hits", "rows", "events", "marks", "curves"] as const;
export type Tab = (typeof tabs)[number];

/** Columns of an area's table. */
export const areaColumns = ["name", "count", "self_ps", "total_ps", "min_ps", "mean_ps", "p50_ps", "p99_ps", "max_ps"] as const;
export interface AreaOrder {
  by: (typeof areaColumns)[number];
  down: boolean;
}
export const usualOrder: AreaOrder = { by: "self_ps", down: true };

export interface Area extends Range {
  rows: string; // "" is all, else as in the API: 0,3,7-12
}

/** A line, or the heading of a folded plane. */
export type Top = number | `p${number}`;

/** What each timeline has for itself, also one beside another. */
export interface Own {
  sel: string;
  area: Area | null;
  folded: number[]; // planes whose folding differs from the usual
  flat: number[]; // lines drawn in one row
  top: Top | null; // first row in sight
  find: string; // rows that are looked for
  pins: number[]; // lines above the others, in their order
  hide: number[];
  curves: Curve[]; // values of events that are drawn
  list: number | null; // the line whose events are listed
}

export interface TraceUrl extends Own {
  run: string;
  host: string; // "": the only one, or the first
  t: Range | null; // null: the whole session
  q: string;
  measured: Range | null;
  marks: Mark[];
  off: Category[]; // kinds of work that stand back
  beside: Beside[]; // other hosts and runs, at the same time
  use: number | null; // of these the one that keys and the panel are about, from 1; 0: the first; null: the one where an event is chosen
  strip: boolean; // all devices of the run are shown
  tips: boolean; // suggestions and late steps are shown
  flame: boolean; // the area is shown as a flame graph
  order: AreaOrder;
  among: string; // filter of the area's table
  drag: Mode;
  dock: Tab | "" | null; // the panel below; "": it is closed; null: as it comes up by itself
  palette: PaletteName | null; // null: what the browser keeps
}

/** A value that a line's events carry. */
export interface Curve {
  line: number;
  stat: string;
}

/** Another timeline: its time is the first one's and `shift` ps. */
export interface Beside {
  run: string; // "": the same
  host: string; // "": the only one
  shift: bigint;
  own: Own;
}

export const BESIDE_MAX = 3;
export const PINS_MAX = 100;

export const emptyOwn: Own = { sel: "", area: null, folded: [], flat: [], top: null, find: "", pins: [], hide: [], curves: [], list: null };

function parseBeside(p: URLSearchParams): Beside[] {
  const out: Beside[] = [];
  for (const part of (p.get("with") ?? "").split(",")) {
    const m = /^([^@]*)@(-?\d{1,19})(?:@([^@]*))?$/.exec(part);
    if (!m || out.length === BESIDE_MAX) continue;
    try {
      out.push({ host: decodeURIComponent(m[1]!), shift: BigInt(m[2]!), run: decodeURIComponent(m[3] ?? ""), own: parseOwn(p, `.${out.length + 1}`) });
    } catch {
      // a name that is none
    }
  }
  return out;
}

function formatBeside(list: readonly Beside[]): string {
  return list.map((b) => `${encodeURIComponent(b.host)}@${b.shift}${b.run ? `@${encodeURIComponent(b.run)}` : ""}`).join(",");
}

/** A bookmark: a time with a note, which may be empty. */
export interface Mark {
  at: bigint;
  note: string;
}

export const emptyTrace: TraceUrl = {
  ...emptyOwn, run: "", host: "", t: null, q: "", measured: null, marks: [], off: [], beside: [], use: null, strip: false, tips: false, flame: false,
  order: usualOrder, among: "", drag: "pan", dock: null, palette: null,
};

/** The panel that comes up by itself: an address says nothing of it. */
export function usualDock(s: Pick<TraceUrl, "sel" | "area" | "beside">): Tab | "" {
  const all: readonly Pick<Own, "sel" | "area">[] = [s, ...s.beside.map((b) => b.own)];
  return all.some((o) => o.area) ? "area" : all.some((o) => o.sel) ? "details" : "";
}

/** The timeline that is used by itself, as in TraceUrl: an address says nothing of it. */
export function usualUse(s: Pick<TraceUrl, "sel" | "beside">): number {
  return s.sel ? 0 : s.beside.findIndex((b) => b.own.sel !== "") + 1;
}

export function parseRange(text: string | null): Range | null {
  const m = /^(-?\d{1,19})\.\.(-?\d{1,19})$/.exec(text ?? "");
  if (!m) return null;
  const t0 = BigInt(m[1]!);
  const t1 = BigInt(m[2]!);
  return t0 < t1 ? { t0, t1 } : null;
}

const ROWS = 100_000; // of a list, all its parts together

export function parseRows(text: string | null): number[] {
  const out: number[] = [];
  for (const part of (text ?? "").split(",")) {
    const m = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(part);
    if (!m) continue;
    const last = Number(m[2] ?? m[1]);
    for (let i = Number(m[1]); i <= last && out.length < ROWS; i++) out.push(i);
    if (out.length === ROWS) break;
  }
  return out;
}

/** Ascending numbers as the API wants them: 0,3,7-12. */
export function formatRows(rows: readonly number[]): string {
  const sorted = [...new Set(rows)].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let i = 0; i < sorted.length; ) {
    let j = i;
    while (sorted[j + 1] === sorted[j]! + 1) j++;
    parts.push(j === i ? `${sorted[i]}` : `${sorted[i]}-${sorted[j]}`);
    i = j + 1;
  }
  return parts.join(",");
}

const MARKS = 50;

function parseMarks(text: string | null): Mark[] {
  const out: Mark[] = [];
  for (const part of (text ?? "").split(",").slice(0, MARKS)) {
    const m = /^(-?\d{1,19})(?:~(.*))?$/s.exec(part);
    if (!m) continue;
    let note = "";
    try {
      note = decodeURIComponent(m[2] ?? "");
    } catch {
      // a note that is none
    }
    out.push({ at: BigInt(m[1]!), note });
  }
  return out;
}

/** Commas and what the address itself needs are escaped once more inside a note. */
function formatMarks(marks: readonly Mark[]): string {
  return marks.slice(0, MARKS).map((m) => `${m.at}${m.note ? `~${encodeURIComponent(m.note)}` : ""}`).join(",");
}

function parseCurves(text: string | null): Curve[] {
  const out: Curve[] = [];
  for (const part of (text ?? "").split(",").slice(0, 32)) {
    const m = /^(\d{1,9})~(.+)$/s.exec(part);
    if (!m) continue;
    try {
      out.push({ line: Number(m[1]), stat: decodeURIComponent(m[2]!) });
    } catch {
      // a name that is none
    }
  }
  return out;
}

/** Parameters with what is behind their names: .1 is the first timeline beside. */
function parseOwn(p: URLSearchParams, behind: string): Own {
  const get = (name: string): string | null => p.get(name + behind);
  const a = parseRange(get("a"));
  const sel = get("sel") ?? "";
  const top = get("top") ?? "";
  return {
    sel: /^\d{1,20}$/.test(sel) ? sel : "",
    area: a && { ...a, rows: formatRows(parseRows(get("ar"))) },
    folded: parseRows(get("fold")),
    flat: parseRows(get("flat")),
    top: !/^p?\d{1,9}$/.test(top) ? null : top.startsWith("p") ? `p${Number(top.slice(1))}` : Number(top),
    find: get("find") ?? "",
    pins: [...new Set((get("pin") ?? "").split(",").filter((n) => /^\d{1,9}$/.test(n)).map(Number))].slice(0, PINS_MAX),
    hide: parseRows(get("hide")),
    curves: parseCurves(get("curve")),
    list: /^\d{1,9}$/.test(get("list") ?? "") ? Number(get("list")) : null,
  };
}

/** One of a few words, else what is usual. */
function oneOf<T extends string, U>(words: readonly T[], text: string | null, usual: U): T | U {
  return words.find((w) => w === text) ?? usual;
}

function parseOrder(text: string | null): AreaOrder {
  const by = oneOf(areaColumns, (text ?? "").replace(/^-/, ""), null);
  return by ? { by, down: text!.startsWith("-") } : usualOrder;
}

export function parseTrace(search: string): TraceUrl {
  const p = new URLSearchParams(search);
  const dock = p.get("dock");
  return {
    ...parseOwn(p, ""),
    run: p.get("run") ?? "",
    host: p.get("host") ?? "",
    t: parseRange(p.get("t")),
    q: p.get("q") ?? "",
    measured: parseRange(p.get("m")),
    marks: parseMarks(p.get("bm")),
    off: categories.map((c) => c.id).filter((c) => (p.get("off") ?? "").split(",").includes(c)),
    beside: parseBeside(p),
    use: /^[0-3]$/.test(p.get("use") ?? "") ? Number(p.get("use")) : null,
    strip: p.get("strip") === "1",
    tips: p.get("tips") === "1",
    flame: p.get("as") === "flame",
    order: parseOrder(p.get("order")),
    among: p.get("among") ?? "",
    drag: oneOf(modes, p.get("drag"), "pan"),
    dock: dock === "no" ? "" : oneOf(tabs, dock, null),
    palette: oneOf(Object.keys(palettes) as PaletteName[], p.get("palette"), null),
  };
}

// What a query may hold as it is; more readable than %2C and %3A.
function encode(text: string): string {
  return encodeURIComponent(text).replace(/%(2C|3A|2F|40)/g, (c) => decodeURIComponent(c));
}

export function formatOwn(s: Own, behind = ""): string[] {
  const parts: [name: string, value: string][] = [];
  if (s.sel) parts.push(["sel", s.sel]);
  if (s.area) parts.push(["a", `${s.area.t0}..${s.area.t1}`]);
  if (s.area?.rows) parts.push(["ar", s.area.rows]);
  if (s.folded.length) parts.push(["fold", formatRows(s.folded)]);
  if (s.flat.length) parts.push(["flat", formatRows(s.flat)]);
  if (s.top !== null) parts.push(["top", String(s.top)]);
  if (s.find) parts.push(["find", encode(s.find)]);
  if (s.pins.length) parts.push(["pin", s.pins.slice(0, PINS_MAX).join(",")]);
  if (s.hide.length) parts.push(["hide", formatRows(s.hide)]);
  if (s.curves.length) parts.push(["curve", encode(s.curves.map((c) => `${c.line}~${encodeURIComponent(c.stat)}`).join(","))]);
  if (s.list !== null) parts.push(["list", String(s.list)]);
  return parts.map(([name, value]) => `${name}${behind}=${value}`);
}

export function formatTrace(s: TraceUrl): string {
  const parts: string[] = [`run=${encode(s.run)}`];
  if (s.host) parts.push(`host=${encode(s.host)}`);
  if (s.t) parts.push(`t=${s.t.t0}..${s.t.t1}`);
  if (s.q) parts.push(`q=${encode(s.q)}`);
  parts.push(...formatOwn(s));
  if (s.area && s.flame) parts.push("as=flame");
  if (s.area && (s.order.by !== usualOrder.by || s.order.down !== usualOrder.down)) parts.push(`order=${s.order.down ? "-" : ""}${s.order.by}`);
  if (s.area && s.among) parts.push(`among=${encode(s.among)}`);
  if (s.off.length) parts.push(`off=${categories.map((c) => c.id).filter((c) => s.off.includes(c)).join(",")}`);
  if (s.beside.length) parts.push(`with=${encode(formatBeside(s.beside))}`);
  s.beside.forEach((b, i) => parts.push(...formatOwn(b.own, `.${i + 1}`)));
  if (s.beside.length && s.use !== null && s.use !== usualUse(s)) parts.push(`use=${s.use}`);
  if (s.strip) parts.push("strip=1");
  if (s.tips) parts.push("tips=1");
  if (s.drag !== "pan") parts.push(`drag=${s.drag}`);
  if (s.dock !== null && s.dock !== usualDock(s)) parts.push(`dock=${s.dock || "no"}`);
  if (s.palette) parts.push(`palette=${s.palette}`);
  if (s.measured) parts.push(`m=${s.measured.t0}..${s.measured.t1}`);
  if (s.marks.length) parts.push(`bm=${encodeURIComponent(formatMarks(s.marks)).replace(/%(2C|7E)/g, (c) => decodeURIComponent(c))}`);
  return `?${parts.join("&")}`;
}
