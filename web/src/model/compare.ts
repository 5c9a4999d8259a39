// Two runs side by side. Ops are matched by what they are (module, opcode, shapes, framework op,
// source line), not by their program's id: a program that was compiled again still matches.
import type { Cell, Report, Table } from "../api/report";
import { plural } from "./format";
import { opColumns, timeOf, type RowTime } from "./ops";
import { findColumn } from "./tablemodel";
import { asNumber, natural, show } from "./units";

export interface Op {
  name: string;
  program: string;
  module: string; // without the number of its compilation
  opcode: string;
  shapes: string;
  framework: string;
  source: string;
  category: string;
  count: number; // NaN: not known
  time: number; // self time, ps
  text: string;
  at?: RowTime | null; // where the timeline shows a run of it
}

const text = (v: Cell | undefined): string => (v === null || v === undefined ? "" : String(v));

/** jit_train(1234), jit_train.5 -> jit_train. */
export function moduleBase(name: string): string {
  return name.replace(/\(\d+\)$/, "").replace(/[._-]\d+$/, "");
}

/** fusion.12, %fusion.12, fusion.12.clone.3 -> fusion. */
export function opBase(name: string): string {
  const s = name.replace(/^%/, "").replace(/(\.clone|\.remat\d*)/g, "");
  // From its end on: a name may be long, and all numbers.
  let end = s.length;
  for (let i = end; i > 0 && isDigit(s, i - 1); ) {
    while (i > 0 && isDigit(s, i - 1)) i--;
    if (i === 0 || (s[i - 1] !== "." && s[i - 1] !== "_")) break;
    end = --i;
  }
  return s.slice(0, end);
}

function isDigit(s: string, i: number): boolean {
  const c = s.charCodeAt(i);
  return c >= 48 && c <= 57;
}

/** The first word before a bracket that begins with a letter, and where; each character is looked at twice at most. */
function called(s: string): { word: string; index: number } | null {
  for (let begin = 0, open = s.indexOf("("); open >= 0; begin = open + 1, open = s.indexOf("(", begin)) {
    let i = open;
    while (i > begin && /[\w-]/.test(s[i - 1]!)) i--;
    while (i < open && !/[a-z]/.test(s[i]!)) i++;
    if (i < open) return { word: s.slice(i, open), index: i };
  }
  return null;
}

function closing(s: string, from: number): number {
  let depth = 0;
  for (let i = from; i < s.length; i++) {
    const c = s[i];
    if (c === "(" || c === "{" || c === "[") depth++;
    else if (c === ")" || c === "}" || c === "]") if (--depth === 0) return i;
  }
  return s.length;
}

/** Of an instruction's text: its opcode, and the shapes of result and operands without layouts and names. */
export function partsOfText(hlo: string): { opcode: string; shapes: string } {
  const eq = hlo.indexOf(" = ");
  const rest = eq >= 0 ? hlo.slice(eq + 3) : hlo;
  const after = rest.startsWith("(") ? rest.slice(closing(rest, 0) + 1) : rest.replace(/^[^\s]+/, "");
  const m = called(after);
  const opcode = m ? m.word : "";
  const at = m ? rest.length - after.length + m.index + m.word.length : 0;
  const head = m ? rest.slice(0, closing(rest, at) + 1) : rest.slice(0, 400);
  const shapes = head.match(/\b[a-z][a-z\d]*\[[\d,<=]*\]/g) ?? [];
  return { opcode, shapes: shapes.join(" ") };
}

/** The table of ops of a report, whatever its columns are called. */
export function opTable(r: Report): Table | null {
  return r.tables.find((t) => t.columns.some((c) => c.type === "op") && t.columns.some((c) => /self_time/.test(c.id)))
    ?? r.tables.find((t) => t.columns.some((c) => c.type === "op")) ?? null;
}

export function opsOf(r: Report): Op[] {
  const t = opTable(r);
  if (!t) return [];
  const at = (...ids: string[]): number => {
    for (const id of ids) {
      const exact = t.columns.findIndex((c) => c.id === id);
      if (exact >= 0) return exact;
    }
    return -1;
  };
  const name = t.columns.findIndex((c) => c.type === "op");
  const time = at("self_time", "total_self_time", "self_ps");
  const weigh = time >= 0 ? time : findColumn(t.columns, "time");
  const col = {
    program: at("program_id", "program"), module: at("module", "module_name", "hlo_module", "program_name"), category: at("category", "hlo_category"),
    text: at("text", "expression", "long_name", "hlo_op_expression", "hlo_text"), framework: at("framework_op", "tf_op_name", "tf_op", "framework_op_name", "framework"),
    source: at("source", "source_info", "source_line"), count: at("occurrences", "count"), opcode: at("opcode"), shapes: at("shapes", "shape"),
  };
  const get = (row: readonly Cell[], i: number): string => (i < 0 ? "" : text(row[i]));
  const places = opColumns(t);
  const unit = t.columns[places.duration]?.unit ?? "";
  return t.rows.map((row) => {
    const hlo = get(row, col.text);
    const parts = partsOfText(hlo);
    const full = get(row, name);
    return {
      name: full, program: get(row, col.program), module: moduleBase(get(row, col.module)),
      opcode: get(row, col.opcode) || parts.opcode || opBase(full), shapes: get(row, col.shapes) || parts.shapes,
      framework: get(row, col.framework), source: get(row, col.source), category: get(row, col.category) || "ops",
      count: col.count < 0 ? NaN : asNumber(row[col.count]), time: asNumber(row[weigh]) || 0, text: hlo,
      at: timeOf(row, places, unit),
    };
  });
}

export type Match = "same" | "new shapes" | "moved" | "added" | "removed";

export interface Pair {
  a: Op | null;
  b: Op | null;
  match: Match;
}

type Key = (o: Op) => string;

const join = (...parts: string[]): string => parts.join("\u0001");

// From strict to loose; what a pass pairs is not looked at again.
const PASSES: { key: Key; match: Match }[] = [
  { key: (o) => join(o.module, opBase(o.name), o.opcode, o.shapes, o.framework, o.source), match: "same" },
  { key: (o) => join(o.module, o.opcode, o.shapes, o.framework, o.source), match: "same" },
  { key: (o) => (o.framework ? join(o.module, o.opcode, o.shapes, o.framework) : join(o.module, o.opcode, o.shapes, o.category)), match: "same" },
  { key: (o) => join(o.opcode, o.shapes, o.framework, o.category), match: "moved" },
  { key: (o) => (o.framework || o.source ? join(o.opcode, o.framework, o.source) : ""), match: "new shapes" },
  { key: (o) => (o.module && !o.framework ? join(o.module, o.name, o.category) : ""), match: "new shapes" },
];

function byKey(ops: readonly Op[], key: Key): Map<string, Op[]> {
  const map = new Map<string, Op[]>();
  for (const o of ops) {
    const k = key(o);
    if (k === "") continue;
    const list = map.get(k);
    if (list) list.push(o);
    else map.set(k, [o]);
  }
  return map;
}

/** Of several alike, those of the same name first, then in the order of their names. */
function pairUp(as: Op[], bs: Op[], match: Match, out: Pair[], used: Set<Op>): void {
  const free = new Set(bs);
  const named = new Map<string, Op[]>(); // the first last
  for (let i = bs.length - 1; i >= 0; i--) {
    const list = named.get(bs[i]!.name);
    if (list) list.push(bs[i]!);
    else named.set(bs[i]!.name, [bs[i]!]);
  }
  const rest: Op[] = [];
  for (const a of as) {
    const twin = named.get(a.name)?.pop();
    if (twin) {
      free.delete(twin);
      used.add(a).add(twin);
      out.push({ a, b: twin, match });
    } else {
      rest.push(a);
    }
  }
  const left = ordered([...free]);
  ordered(rest).slice(0, left.length).forEach((a, i) => {
    used.add(a).add(left[i]!);
    out.push({ a, b: left[i]!, match });
  });
}

/** By name; numbers in it as numbers. */
function ordered(ops: Op[]): Op[] {
  if (ops.length < 2) return ops;
  const keys = new Map(ops.map((o) => [o, natural(o.name)]));
  return ops.sort((x, y) => (keys.get(x)! < keys.get(y)! ? -1 : keys.get(x)! > keys.get(y)! ? 1 : 0));
}

export function matchOps(a: readonly Op[], b: readonly Op[]): Pair[] {
  const steps = matchInSteps(a, b);
  for (;;) {
    const at = steps.next();
    if (at.done) return at.value;
  }
}

/** The same, a pass at a time: between them a page may go on. */
export function* matchInSteps(a: readonly Op[], b: readonly Op[]): Generator<void, Pair[]> {
  const out: Pair[] = [];
  const used = new Set<Op>();
  for (const { key, match } of PASSES) {
    const bs = byKey(b.filter((o) => !used.has(o)), key);
    yield;
    for (const [k, list] of byKey(a.filter((o) => !used.has(o)), key)) {
      const others = bs.get(k);
      if (others) pairUp(list, others, match, out, used);
    }
    yield;
  }
  for (const o of a) if (!used.has(o)) out.push({ a: o, b: null, match: "removed" });
  for (const o of b) if (!used.has(o)) out.push({ a: null, b: o, match: "added" });
  return out;
}

/** Rows of two tables by keys from strict to loose ("": it has none): of each of the one its partner in the other. */
export function pairRows<T>(as: readonly T[], bs: readonly T[], passes: readonly (readonly [(a: T) => string, (b: T) => string])[]): Map<T, T> {
  const out = new Map<T, T>();
  const used = new Set<T>();
  for (const [mine, theirs] of passes) {
    const free = new Map<string, T[]>();
    for (const b of bs) {
      const k = used.has(b) ? "" : theirs(b);
      if (k !== "") free.has(k) ? free.get(k)!.push(b) : free.set(k, [b]);
    }
    for (const list of free.values()) list.reverse();
    for (const a of as) {
      const b = out.has(a) ? undefined : free.get(mine(a))?.pop();
      if (b === undefined) continue;
      out.set(a, b);
      used.add(b);
    }
  }
  return out;
}

/* --- what the change is made of --- */

export interface Basis {
  perStep: boolean;
  scaleA: number; // self time of all cores and steps -> what the bars show
  scaleB: number;
  totalA: number; // ps
  totalB: number;
}

export function metricOf(r: Report, id: string): number {
  return asNumber(r.metrics.find((m) => m.id === id)?.value);
}

/** Of a step where both runs have steps, else of a core over the whole profile. */
export function basisOf(a: Report, b: Report): Basis {
  const cores = (r: Report): number => Math.max(1, metricOf(r, "cores") || 1);
  const steps = (r: Report): number => metricOf(r, "steps");
  const time = (r: Report): number => metricOf(r, "step_time_mean");
  if (steps(a) > 0 && steps(b) > 0 && time(a) > 0 && time(b) > 0)
    return { perStep: true, scaleA: 1 / (steps(a) * cores(a)), scaleB: 1 / (steps(b) * cores(b)), totalA: time(a), totalB: time(b) };
  return { perStep: false, scaleA: 1 / cores(a), scaleB: 1 / cores(b), totalA: NaN, totalB: NaN };
}

export interface Part {
  name: string;
  a: number;
  b: number;
}

/** Time by category, and what is no op's: from the whole of A to the whole of B. */
export function partsOf(pairs: readonly Pair[], basis: Basis): { parts: Part[]; totalA: number; totalB: number; opsA: number; opsB: number } {
  const map = new Map<string, Part>();
  let opsA = 0;
  let opsB = 0;
  for (const { a, b } of pairs) {
    const name = (b ?? a)!.category;
    const part = map.get(name) ?? { name, a: 0, b: 0 };
    map.set(name, part);
    if (a) part.a += a.time * basis.scaleA;
    if (b) part.b += b.time * basis.scaleB;
    opsA += (a?.time ?? 0) * basis.scaleA;
    opsB += (b?.time ?? 0) * basis.scaleB;
  }
  const parts = [...map.values()].sort((x, y) => Math.abs(y.b - y.a) - Math.abs(x.b - x.a));
  const totalA = Number.isNaN(basis.totalA) ? opsA : basis.totalA;
  const totalB = Number.isNaN(basis.totalB) ? opsB : basis.totalB;
  if (basis.perStep) parts.push({ name: OUTSIDE, a: totalA - opsA, b: totalB - opsB });
  return { parts, totalA, totalB, opsA, opsB };
}

const OUTSIDE = "outside of ops";

/** The same way, op by op: those that changed most, then all others, then what is no op's. */
export function partsByOp(pairs: readonly Pair[], basis: Basis, most: number): Part[] {
  const all = pairs.map(({ a, b }): Part => ({ name: (b ?? a)!.name, a: (a?.time ?? 0) * basis.scaleA, b: (b?.time ?? 0) * basis.scaleB }));
  all.sort((x, y) => Math.abs(y.b - y.a) - Math.abs(x.b - x.a));
  const sum = (list: readonly Part[], name: string): Part => list.reduce((s, p) => ({ name, a: s.a + p.a, b: s.b + p.b }), { name, a: 0, b: 0 });
  const shown = all.slice(0, most).filter((p) => p.a !== p.b);
  const rest = all.slice(shown.length);
  const ops = sum(all, "");
  return [
    ...shown,
    ...(rest.length ? [sum(rest, plural(rest.length, "other op"))] : []),
    ...(basis.perStep ? [{ name: OUTSIDE, a: basis.totalA - ops.a, b: basis.totalB - ops.b }] : []),
  ];
}

/* --- findings --- */

export interface FindingPair {
  rule: string;
  text: string;
  a: number; // share; NaN: it does not apply there
  b: number;
  of: string; // what it is a share of, where that is not the time: more of it is not worse then
}

const OF_PEAKS: Record<string, string> = { hbm_bound: "of the peak", compute_bound: "of the peak", low_utilization: "unused, of the peak" };

/** Of both runs, by rule: what is new, what is gone, what changed; the largest change first. */
export function findingPairs(a: Report, b: Report): FindingPair[] {
  const out = new Map<string, FindingPair>();
  for (const [r, side] of [[a, "a"], [b, "b"]] as const) {
    const t = r.tables.find((x) => x.id === "findings");
    const at = (id: string): number => t?.columns.findIndex((c) => c.id === id) ?? -1;
    for (const row of t?.rows ?? []) {
      const rule = text(row[at("rule")]);
      const pair = out.get(rule) ?? { rule, text: text(row[at("finding")]), a: NaN, b: NaN, of: OF_PEAKS[rule] ?? "" };
      pair[side] = asNumber(row[at("share")]);
      out.set(rule, pair);
    }
  }
  const size = (p: FindingPair): number => Math.abs((p.b || 0) - (p.a || 0));
  return [...out.values()].sort((x, y) => size(y) - size(x));
}

export interface Warning {
  severity: "warning" | "info";
  text: string;
}

/** Whether the two are the same work at all. */
export function checkWorkload(a: Report, b: Report, pairs: readonly Pair[]): Warning[] {
  const out: Warning[] = [];
  const say = (id: string, what: string): void => {
    const x = a.metrics.find((m) => m.id === id);
    const y = b.metrics.find((m) => m.id === id);
    if (!x || !y || x.value === null || y.value === null || x.value === y.value) return;
    out.push({ severity: "warning", text: `${what}: ${show(x.value, x.unit)} in A, ${show(y.value, y.unit)} in B. What follows compares unlike machines.` });
  };
  say("device_type", "Not the same device");
  say("hosts", "Not as many hosts");
  say("cores", "Not as many cores");
  for (const [r, name] of [[a, "A"], [b, "B"]] as const) {
    if (r.missing_hosts.length) out.push({ severity: "warning", text: `${plural(r.missing_hosts.length, "host")} of ${name} could not be read: ${r.missing_hosts.map((h) => h.host).slice(0, 5).join(", ")}.` });
    if (Number.isNaN(metricOf(r, "steps"))) out.push({ severity: "info", text: `${name} has no steps: whole profiles are compared, not steps. They are alike only if the captures are equally long.` });
  }
  const modules = (side: "a" | "b"): Set<string> => new Set(pairs.flatMap((p) => (p[side]?.module ? [p[side]!.module] : [])));
  const ma = modules("a");
  const mb = modules("b");
  const gone = [...ma].filter((m) => !mb.has(m));
  const fresh = [...mb].filter((m) => !ma.has(m));
  if (gone.length || fresh.length)
    out.push({ severity: "warning", text: `Not the same programs.${gone.length ? ` Only in A: ${gone.slice(0, 6).join(", ")}.` : ""}${fresh.length ? ` Only in B: ${fresh.slice(0, 6).join(", ")}.` : ""}` });
  const compiled = new Set(pairs.flatMap((p) => (p.a && p.b && p.a.module && p.a.module === p.b.module && p.a.program && p.b.program && p.a.program !== p.b.program ? [p.b.module] : [])));
  if (compiled.size)
    out.push({ severity: "info", text: `Compiled anew: ${[...compiled].slice(0, 6).join(", ")}. Ops are matched by what they are, not by number. Profiles do not say which versions compiled them.` });
  const time = pairs.reduce((s, p) => s + (p.a?.time ?? 0) + (p.b?.time ?? 0), 0);
  const shaped = pairs.filter((p) => p.match === "new shapes").reduce((s, p) => s + p.a!.time + p.b!.time, 0);
  const single = pairs.filter((p) => !p.a || !p.b).reduce((s, p) => s + (p.a?.time ?? p.b?.time ?? 0), 0);
  if (time > 0 && shaped / time > 0.2) out.push({ severity: "warning", text: `${show(shaped / time, "fraction")} of the time is in ops whose shapes changed: is the batch or the model another?` });
  if (time > 0 && single / time > 0.5) out.push({ severity: "warning", text: `Only ${show(1 - single / time, "fraction")} of the time is in ops that both runs have: these look like different models.` });
  return out;
}

/** The table of ops, largest change first. */
export function pairTable(pairs: readonly Pair[], basis: Basis): Table {
  const of = basis.perStep ? " per step" : "";
  const delta = pairs.reduce((s, p) => s + (p.b?.time ?? 0) * basis.scaleB - (p.a?.time ?? 0) * basis.scaleA, 0);
  const rows = pairs.map((p): Cell[] => {
    const a = p.a ? p.a.time * basis.scaleA : null;
    const b = p.b ? p.b.time * basis.scaleB : null;
    const d = (b ?? 0) - (a ?? 0);
    const o = (p.b ?? p.a)!;
    return [
      o.name, p.match, o.category, a === null ? null : Math.round(a), b === null ? null : Math.round(b), Math.round(d),
      a !== null && b !== null && a > 0 ? b / a : null, delta !== 0 ? d / delta : null, Math.abs(Math.round(d)),
      p.a && !Number.isNaN(p.a.count) ? p.a.count : null, p.b && !Number.isNaN(p.b.count) ? p.b.count : null,
      o.framework || null, o.source || null, p.a && p.b && p.a.name !== p.b.name ? p.a.name : null, p.a?.text || null, p.b?.text || null,
      p.a?.program || null, p.b?.program || null,
    ];
  });
  rows.sort((x, y) => Number(y[8]) - Number(x[8]));
  return {
    id: "pairs", title: "Ops", note: null, total_rows: rows.length, rest: null, sort: null, rows,
    columns: [
      { id: "op", label: "Op", unit: "", type: "op", definition: "name in B; in A where B has none" },
      { id: "match", label: "Match", unit: "", type: "text", definition: "same: alike in module, opcode, shapes and framework op; moved: in another module; new shapes: the same framework op with other shapes" },
      { id: "category", label: "Category", unit: "", type: "text" },
      { id: "a", label: `A${of}`, unit: "ps", type: "number", definition: "self time of a core" },
      { id: "b", label: `B${of}`, unit: "ps", type: "number", definition: "self time of a core" },
      { id: "delta", label: "B \u2212 A", unit: "ps", type: "number" },
      { id: "ratio", label: "B / A", unit: "", type: "number" },
      { id: "share_of_change", label: "Of the change", unit: "fraction", type: "number", definition: "the op's part of the change of all ops together" },
      { id: "abs_min", label: "Size of the change", unit: "ps", type: "number" },
      { id: "a_count", label: "Count in A", unit: "count", type: "number" },
      { id: "b_count", label: "Count in B", unit: "count", type: "number" },
      { id: "framework_op", label: "Framework op", unit: "", type: "text" },
      { id: "source", label: "Source", unit: "", type: "text" },
      { id: "a_name", label: "Name in A", unit: "", type: "text" },
      { id: "a_text", label: "HLO in A", unit: "", type: "text" },
      { id: "b_text", label: "HLO in B", unit: "", type: "text" },
      { id: "a_program", label: "Program in A", unit: "", type: "text" },
      { id: "b_program", label: "Program in B", unit: "", type: "text" },
    ],
  };
}

/* --- buffers --- */

/** Buffers at the peak, in the shape of ops: their weight is their size. */
export function buffersOf(r: Report): Op[] {
  const t = r.tables.find((x) => x.id === "buffers");
  if (!t) return [];
  const at = (id: string): number => t.columns.findIndex((c) => c.id === id);
  const get = (row: readonly Cell[], id: string): string => (at(id) < 0 ? "" : text(row[at(id)]));
  return t.rows.map((row) => {
    const name = get(row, "op");
    return {
      name, program: get(row, "program_id"), module: "", opcode: get(row, "opcode") || opBase(name), shapes: get(row, "shape").replace(/\{[^}]*\}/g, ""),
      framework: get(row, "framework_op"), source: get(row, "source"), category: get(row, "kind") || "buffers", count: NaN, time: asNumber(row[at("size")]) || 0, text: get(row, "shape"),
    };
  });
}

/** The largest change first. */
export function bufferTable(pairs: readonly Pair[]): Table {
  const rows = pairs.map(({ a, b, match }): Cell[] => {
    const o = (b ?? a)!;
    return [o.name, match, o.category, a?.time ?? null, b?.time ?? null, (b?.time ?? 0) - (a?.time ?? 0), a?.text || null, b?.text || null, o.framework || null, a && b && a.name !== b.name ? a.name : null];
  });
  rows.sort((x, y) => Math.abs(Number(y[5])) - Math.abs(Number(x[5])) || Number(y[4] ?? 0) - Number(x[4] ?? 0));
  return {
    id: "buffers", title: "Buffers at the peak", note: null, rows, total_rows: rows.length, rest: null, sort: null,
    columns: [
      { id: "op", label: "Op", unit: "", type: "op", definition: "whose result it holds, in B; in A where B has none" },
      { id: "match", label: "Match", unit: "", type: "text", definition: "same: alike in opcode, shape and framework op; new shapes: the same framework op with another shape" },
      { id: "kind", label: "Kind", unit: "", type: "text" },
      { id: "a", label: "A", unit: "bytes", type: "bytes" },
      { id: "b", label: "B", unit: "bytes", type: "bytes" },
      { id: "delta", label: "B \u2212 A", unit: "bytes", type: "bytes" },
      { id: "a_shape", label: "Shape in A", unit: "", type: "text" },
      { id: "b_shape", label: "Shape in B", unit: "", type: "text" },
      { id: "framework_op", label: "Framework op", unit: "", type: "text" },
      { id: "a_name", label: "Name in A", unit: "", type: "text" },
    ],
  };
}
