// Two programs, op by op: what only one has, and what is another in it. Ops are matched as Compare does, by
// what they are, within the computation that they are in; never by number.
import type { Cell, Report, Table } from "../api/report";
import { matchInSteps, type Op } from "./compare";
import type { Graph, GraphEdge, GraphNode } from "./graph";
import { asNumber } from "./units";

export interface ProgramOp {
  name: string;
  opcode: string;
  shape: string; // with its layout
  comp: string;
  framework: string;
  source: string;
  time: number; // ps; NaN: it did not run as an op of its own
  kind: string; // of a fusion
  operands: number[]; // rows; of the first hundred
  noperands: number;
  inner: number;
}

/** Of the table of all ops. */
export function programOps(t: Table | undefined): ProgramOp[] {
  const at = (id: string): number => t?.columns.findIndex((c) => c.id === id) ?? -1;
  const [name, opcode, shape, comp, framework, source, time, kind, rows, n, inner] = ["op", "opcode", "shape", "computation", "framework_op", "source", "self_time", "fusion_kind", "operand_rows", "operands", "inner_ops"].map(at) as [
    number, number, number, number, number, number, number, number, number, number, number,
  ];
  const get = (row: readonly Cell[], i: number): string => (i < 0 || row[i] === null || row[i] === undefined ? "" : String(row[i]));
  return (t?.rows ?? []).map((row) => ({
    name: get(row, name), opcode: get(row, opcode), shape: get(row, shape), comp: get(row, comp), framework: get(row, framework), source: get(row, source),
    time: time < 0 || row[time] === null ? NaN : asNumber(row[time]), kind: get(row, kind),
    operands: get(row, rows).split(" ").filter((x) => /^\d+$/.test(x)).map(Number), noperands: asNumber(row[n]) || 0, inner: asNumber(row[inner]) || 0,
  }));
}

export const plainShape = (shape: string): string => shape.replace(/\{[^}]*\}/g, "").replace(/\/\*[^*]*\*\//g, "");

/** main.9_spmd, fused_computation.3.clone -> main_spmd, fused_computation: their numbers say nothing. */
export const compBase = (comp: string): string => comp.replace(/\.(clone|sunk)/g, "").replace(/[._]\d+/g, "");

/** Without the name of the function that was compiled: the same op of two functions. */
const plainFramework = (op: string): string => op.replace(/^jit\([^()]*\)\//, "");

export interface Change {
  a: number; // row in the other program, or -1
  b: number; // in this one, or -1
  mark: "added" | "removed" | "changed" | "same";
  what: string[];
}

function whatChanged(a: ProgramOp, b: ProgramOp): string[] {
  const shapes = a.shape !== b.shape && plainShape(a.shape) !== plainShape(b.shape);
  return [
    shapes && "shape", !shapes && a.shape !== b.shape && "layout", a.kind !== b.kind && "fusion kind", a.inner !== b.inner && "ops inside", a.noperands !== b.noperands && "operands",
    a.opcode !== b.opcode && "opcode", a.comp !== b.comp && compBase(a.comp) !== compBase(b.comp) && "computation", a.source !== b.source && a.source !== "" && b.source !== "" && "source line",
  ].filter((x): x is string => typeof x === "string");
}

/** Programs have few shapes and scopes, and many ops. */
function once(of: (text: string) => string): (text: string) => string {
  const known = new Map<string, string>();
  return (text) => {
    let v = known.get(text);
    if (v === undefined) known.set(text, (v = of(text)));
    return v;
  };
}

/** `a`: the other program, `b`: this one. A pass at a time. */
export function* diffInSteps(a: readonly ProgramOp[], b: readonly ProgramOp[]): Generator<void, Change[]> {
  const [ra, rb] = [new Map<Op, number>(), new Map<Op, number>()];
  const [shape, comp, framework] = [once(plainShape), once(compBase), once(plainFramework)];
  const make = (list: readonly ProgramOp[], rows: Map<Op, number>): Op[] =>
    list.map((o, i) => {
      const op: Op = { name: o.name, program: "", module: comp(o.comp), opcode: o.opcode, shapes: shape(o.shape), framework: framework(o.framework), source: o.source, category: o.opcode, count: NaN, time: 0, text: "" };
      rows.set(op, i);
      return op;
    });
  const before = make(a, ra);
  yield;
  const now = make(b, rb);
  yield;
  const pairs = yield* matchInSteps(before, now);
  return pairs.map((p): Change => {
    const [i, k] = [p.a ? ra.get(p.a)! : -1, p.b ? rb.get(p.b)! : -1];
    if (i < 0) return { a: i, b: k, mark: "added", what: [] };
    if (k < 0) return { a: i, b: k, mark: "removed", what: [] };
    const what = whatChanged(a[i]!, b[k]!);
    return { a: i, b: k, mark: what.length ? "changed" : "same", what };
  });
}

export function diffPrograms(a: readonly ProgramOp[], b: readonly ProgramOp[]): Change[] {
  const steps = diffInSteps(a, b);
  for (;;) {
    const at = steps.next();
    if (at.done) return at.value;
  }
}

const GHOSTS = 40; // ops of the other program that are drawn

/** The drawn ops with their marks, and those of the other program that stood among them. */
export function markGraph(g: Graph, a: readonly ProgramOp[], b: readonly ProgramOp[], changes: readonly Change[]): Graph & { ghosts: number } {
  const byB = new Map(changes.filter((c) => c.b >= 0).map((c) => [c.b, c]));
  const byA = new Map(changes.filter((c) => c.a >= 0).map((c) => [c.a, c]));
  const rowOf = new Map(b.map((o, i) => [`${o.comp}\u0001${o.name}`, i]));
  const nodeOf = new Map<number, number>(); // by row of this program
  const nodes = g.nodes.map((n, i): GraphNode => {
    const row = rowOf.get(`${n.computation}\u0001${n.id}`);
    const c = row === undefined ? undefined : byB.get(row);
    if (row !== undefined) nodeOf.set(row, i);
    return !c || c.mark === "same" ? n : { ...n, mark: c.mark, what: c.what.join(", ") };
  });
  const edges: GraphEdge[] = [...g.edges];
  const ghostOf = new Map<number, number>(); // by row of the other program
  const here = (row: number): number | undefined => {
    const c = byA.get(row);
    return ghostOf.get(row) ?? (c && c.b >= 0 ? nodeOf.get(c.b) : undefined);
  };
  const near = (row: number): number | undefined => a[row]!.operands.map(here).find((x) => x !== undefined) ?? users.get(row)?.map(here).find((x) => x !== undefined);
  const users = new Map<number, number[]>();
  a.forEach((o, i) => o.operands.forEach((k) => (users.has(k) ? users.get(k)!.push(i) : users.set(k, [i]))));
  const gone = changes.filter((c) => c.mark === "removed").map((c) => c.a);
  let left = 0;
  // Twice: what stands behind one that is gone is gone, too.
  for (let round = 0; round < 2; round++)
    for (const row of gone) {
      if (ghostOf.has(row)) continue;
      const beside = near(row);
      if (beside === undefined) continue;
      if (ghostOf.size === GHOSTS) {
        left += round;
        continue;
      }
      const o = a[row]!;
      ghostOf.set(row, nodes.length);
      nodes.push({ id: o.name, opcode: o.opcode, shape: o.shape, computation: o.comp, share: NaN, more: 0, open: false, within: nodes[beside]!.within, inner: 0, opened: false, kind: o.kind, mover: "", mark: "removed" });
    }
  const edge = (from: number | undefined, to: number | undefined): void => {
    if (from !== undefined && to !== undefined && from !== to) edges.push({ from, to, kind: "operand", changes: "", fromLayout: "", toLayout: "", copy: false, times: 1, gone: true });
  };
  for (const [row, node] of ghostOf) {
    for (const k of new Set(a[row]!.operands)) edge(here(k), node);
    for (const u of new Set(users.get(row))) if (!ghostOf.has(u)) edge(node, here(u));
  }
  return { ...g, nodes, edges, ghosts: left };
}

const SIGNS = { added: "+", removed: "\u2212", changed: "\u2260", same: "=" } as const;

/** What is not the same, by time, then as it stands in the programs. */
export function changeTable(a: readonly ProgramOp[], b: readonly ProgramOp[], changes: readonly Change[], scale: number, program: string, words: string): Table {
  const rows = changes.filter((c) => c.mark !== "same").map((c): Cell[] => {
    const [x, y] = [a[c.a], b[c.b]];
    const o = (y ?? x)!;
    const [s, t] = [x && !Number.isNaN(x.time) ? Math.round(x.time * scale) : null, y && !Number.isNaN(y.time) ? y.time : null];
    return [
      y?.name ?? null, x?.name ?? null, y ? program : null, `${SIGNS[c.mark]} ${c.mark}`, c.what.join(", ") || null, o.opcode, s, t, s === null && t === null ? null : (t ?? 0) - (s ?? 0),
      x?.shape || null, y?.shape || null, o.comp || null, o.framework || null, o.source || null,
    ];
  });
  rows.sort((p, q) => Math.abs(asNumber(q[8]) || 0) - Math.abs(asNumber(p[8]) || 0));
  return {
    id: "changes", title: "Ops that are not the same", note: words, rows, total_rows: rows.length, rest: null, sort: null,
    columns: [
      { id: "op", label: "Op", unit: "", type: "op", definition: "name in this program; n/a: only the other has it" },
      { id: "a_name", label: "Name there", unit: "", type: "text", definition: "in the other program; n/a: only this one has it" },
      { id: "program_id", label: "Program", unit: "", type: "text", definition: "n/a: only the other has it" },
      { id: "mark", label: "Is", unit: "", type: "text", definition: "+ added: only this program has it; \u2212 removed: only the other; \u2260 changed: matched, but not the same" },
      { id: "what", label: "What changed", unit: "", type: "text" },
      { id: "opcode", label: "Opcode", unit: "", type: "text" },
      { id: "a", label: "There", unit: "ps", type: "number", definition: "self time in the other program, for as many runs of it as here where both say how many" },
      { id: "b", label: "Here", unit: "ps", type: "number", definition: "self time in this program" },
      { id: "delta", label: "Here \u2212 there", unit: "ps", type: "number" },
      { id: "a_shape", label: "Shape there", unit: "", type: "text" },
      { id: "b_shape", label: "Shape here", unit: "", type: "text" },
      { id: "computation", label: "Computation", unit: "", type: "text" },
      { id: "framework_op", label: "Framework op", unit: "", type: "text" },
      { id: "source", label: "Source", unit: "", type: "text" },
    ],
  };
}

/** Of the modules' table: how often a program ran; NaN: not known. */
export function runsOf(r: Report, program: string): number {
  const t = r.tables.find((x) => x.id === "modules");
  const at = (id: string): number => t?.columns.findIndex((c) => c.id === id) ?? -1;
  const row = t?.rows.find((x) => String(x[at("program_id")]) === program);
  return row ? asNumber(row[at("runs")]) || NaN : NaN;
}
