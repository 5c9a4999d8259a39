import { expect, test } from "vitest";
import type { Report, Table, Tree } from "../src/api/report";
import { asReport } from "../src/api/report";
import { compared, comparedTree, doubtsOf, lessBase, pairOps, scaledMetrics, scaleOf, twinProgram, type Base, type OpPairs } from "../src/model/base";
import { elsewhere, parseTool, timelineHref, toolArguments } from "../src/model/toolurl";
import { groupHref, groupOf, hostHref } from "../src/model/grouprows";
import { found, inverted, treeCsv } from "../src/model/treemodel";

const metric = (id: string, value: number) => ({ id, label: id, unit: "", value, reason: null, note: null, definition: "", spread: null });
const overview = (steps: number, cores: number, device = 100, idle = 0): Report =>
  asReport({ tool: "overview_page", metrics: [...(steps ? [metric("steps", steps)] : []), metric("cores", cores), metric("hosts", 1), metric("device_time", device), metric("idle_fraction", idle)] });

const ops = (rows: [op: string, program: string, text: string, time: number][]): Table => ({
  id: "ops", title: "HLO ops", note: null, total_rows: rows.length, rest: null, sort: null, totals: { self_time: 0 },
  columns: [
    { id: "op", label: "Op", unit: "", type: "op" }, { id: "program_id", label: "Program", unit: "", type: "text" },
    { id: "self_time", label: "Self time", unit: "ps", type: "number" }, { id: "text", label: "HLO", unit: "", type: "text" },
  ],
  rows: rows.map(([op, program, text, time]) => [op, program, time, text]),
});

test("a base with twice the steps stands with half of its time", () => {
  expect(scaleOf(overview(2, 4), overview(4, 4), false).cores).toBe(0.5);
  expect(scaleOf(overview(2, 8), overview(4, 4), false).cores).toBe(1);
});

test("without steps cores are made alike, and of a stretch of time what was watched", () => {
  expect(scaleOf(overview(0, 4), overview(4, 2), false).cores).toBe(2);
  expect(scaleOf(overview(3, 4, 50), overview(4, 4, 100, 0.5), true).cores).toBe(0.25);
  expect(scaleOf(null, overview(4, 4), false)).toMatchObject({ cores: 1, hosts: 1 });
});

function paired(now: Report, then: Report, scale: number): OpPairs {
  const steps = pairOps(now, then, scale);
  for (;;) {
    const at = steps.next();
    if (at.done) return at.value;
  }
}

const HLO = "%f = f32[8]{0} fusion(f32[8]{0} %a), kind=kLoop";

test("ops are matched by what they are: compiled anew they stand beside each other, and what is gone is counted", () => {
  const now = asReport({ tool: "hlo_stats", tables: [ops([["fusion.7", "2", HLO, 30], ["new.1", "2", "%n = f32[1] tanh(f32[1] %a)", 5]])] });
  const then = asReport({ tool: "hlo_stats", tables: [ops([["fusion.3", "1", HLO, 40], ["old.1", "1", "%o = s32[9] sort(s32[9] %a)", 8]])] });
  const scale = { cores: 0.5, hosts: 1, words: "for as many steps" };
  const base: Base = { run: "before", report: then, scale, ops: paired(now, then, 0.5) };
  const t = compared(now.tables[0]!, base);
  expect(t.columns.map((c) => c.id)).toEqual(["op", "program_id", "self_time", "base", "base_delta", "base_share", "text", "base_match"]);
  expect(t.rows[0]).toEqual(["fusion.7", "2", 30, 20, 10, 10 / 11, HLO, "same"]);
  expect(t.rows[1]!.slice(2, 6)).toEqual([5, null, 5, 5 / 11]);
  expect(t.note).toContain("in 1 row that only the base has");
  expect(t.totals).toEqual({ self_time: 0, base: 0, base_delta: 0 });
});

test("of a part of the rows nothing is said of all, and the graph's amounts are held against none", () => {
  const now = asReport({ tool: "hlo_stats", tables: [ops([["fusion.7", "2", HLO, 30], ["new.1", "2", "%n = f32[1] tanh(f32[1] %a)", 5]])] });
  const then = asReport({ tool: "hlo_stats", tables: [ops([["fusion.3", "1", HLO, 40], ["old.1", "1", "%o = s32[9] sort(s32[9] %a)", 8]])] });
  const base: Base = { run: "before", report: then, scale: { cores: 1, hosts: 1, words: "" }, ops: paired(now, then, 1) };
  const whole = now.tables[0]!;
  for (const t of [compared({ ...whole, total_rows: 9 }, base), compared(whole, { ...base, part: true })]) {
    expect(t.columns.map((c) => c.id)).not.toContain("base_share");
    expect(t.note).not.toContain("in all");
    expect(t.note).not.toContain("only the base");
    expect(t.rows[0]!.slice(2, 5)).toEqual([30, 40, -10]);
  }
  expect(compared(whole, { ...base, report: { ...then, tool: "graph_viewer" } })).toBe(whole);
  expect(compared(whole, { ...base, doubts: "Not the same device." }).note).toContain("Not the same device.");
});

test("a row has no change where the base's table is cut: it may be in the rest", () => {
  const layers = (rows: [string, number][], total: number): Table => ({ id: "layers", title: "", note: null, total_rows: total, rest: null, sort: null, columns: [{ id: "layer", label: "", unit: "", type: "text" }, { id: "self_time", label: "", unit: "ps", type: "number" }], rows });
  const base = (total: number): Base => ({ run: "b", report: asReport({ tables: [layers([["x", 4]], total)] }), scale: { cores: 1, hosts: 1, words: "" }, ops: null });
  const t = layers([["x", 5], ["y", 7]], 2);
  expect(compared(t, base(1)).rows[1]!.slice(1, 4)).toEqual([7, null, 7]);
  expect(compared(t, base(2)).rows).toEqual([["x", 5, 4, 1], ["y", 7, null, null]]);
});

test("collectives by replica group are matched on both pages that have them", () => {
  const groups = (op: string, total: number): Table => ({
    id: "replica_groups", title: "", note: null, total_rows: 1, rest: null, sort: null,
    columns: [{ id: "op", label: "", unit: "", type: "op" }, { id: "kind", label: "", unit: "", type: "text" }, { id: "group", label: "", unit: "", type: "text" }, { id: "total", label: "", unit: "ps", type: "number" }, { id: "duration", label: "", unit: "ps", type: "number" }],
    rows: [[op, "all-reduce", "0,1", total, 1]],
  });
  const base: Base = { run: "b", report: asReport({ tables: [groups("all-reduce.9", 40)] }), scale: { cores: 0.5, hosts: 1, words: "" }, ops: null };
  expect(compared(groups("all-reduce.1", 30), base).rows[0]!.slice(3, 6)).toEqual([30, 20, 10]);
});

test("figures that are sums are scaled as tables are, means are not", () => {
  const scale = { cores: 0.5, hosts: 2, words: "" };
  expect(scaledMetrics([metric("device_time", 10), metric("host_input_time", 10), metric("step_time_mean", 10)], scale).map((m) => m.value)).toEqual([5, 20, 10]);
});

test("the base's program is the one that is called alike, or none", () => {
  const programs = (rows: [string, string][]): Report => asReport({ tables: [{ id: "modules", title: "", note: null, total_rows: rows.length, rest: null, sort: null, columns: [{ id: "module", label: "", unit: "", type: "text" }, { id: "program_id", label: "", unit: "", type: "text" }], rows }] });
  const [now, then] = [programs([["jit_a", "1"], ["jit_b", "2"]]), programs([["jit_b(77)", "77"], ["jit_c", "3"]])];
  expect(twinProgram(now, then, "2")).toBe("77");
  expect(twinProgram(now, then, "1")).toBe("");
  expect(twinProgram(now, then, "")).toBe("");
});

test("another device and hosts that could not be read are said", () => {
  const device = (value: string): Report => asReport({ metrics: [{ ...metric("device_type", 0), value }] });
  expect(doubtsOf(device("TPU v5"), device("TPU v5"), null)).toBe("");
  expect(doubtsOf(device("TPU v5"), device("A100"), null)).toContain("A100 there");
  expect(doubtsOf(device("a"), { ...device("a"), missing_hosts: [{ host: "h9", code: "cut", detail: "" }] }, null)).toContain("h9");
  expect(doubtsOf(device("a"), device("a"), device("a"))).toBe("The base has no ops.");
});

test("a share of the hardware is not scaled and has no share of a change", () => {
  const units = (host: string, busy: number | null): Table => ({
    id: "units", title: "Units", note: null, total_rows: 1, rest: null, sort: null,
    columns: [
      { id: "host", label: "Host", unit: "", type: "text" }, { id: "device", label: "Device", unit: "", type: "number" }, { id: "node", label: "Node", unit: "", type: "number" },
      { id: "unit", label: "Unit", unit: "", type: "text" }, { id: "busy", label: "Busy", unit: "fraction", type: "number" },
    ],
    rows: [[host, 0, 1, "MXU", busy]],
  });
  const base: Base = { run: "before", report: asReport({ tables: [units("other-host", 0.25)] }), scale: { cores: 9, hosts: 9, words: "" }, ops: null };
  const t = compared(units("h", 0.5), base);
  expect(t.columns.map((c) => c.id)).toEqual(["host", "device", "node", "unit", "busy", "base", "base_delta"]);
  expect(t.rows[0]!.slice(4)).toEqual([0.5, 0.25, 0.25]);
  expect(compared(units("h", null), base).rows[0]!.slice(4)).toEqual([null, 0.25, null]);
  const matrix = (v: number): Table => ({ id: "matrix", title: "", note: null, total_rows: 1, rest: null, sort: null, columns: [{ id: "unit", label: "", unit: "", type: "text" }, { id: "0", label: "0", unit: "fraction", type: "number" }], rows: [["MXU", v]] });
  expect(lessBase(matrix(0.5), matrix(0.75)).rows).toEqual([["MXU", -0.25]]);
  const named = (t: Table, id: string): Table => ({ ...t, columns: [t.columns[0]!, { ...t.columns[1]!, id }] });
  expect(lessBase(named(matrix(0.5), "w-3/7"), named(matrix(0.75), "7")).rows).toEqual([["MXU", -0.25]]);
  expect(lessBase(named(matrix(0.5), "w-3/7"), named(matrix(0.75), "1")).rows).toEqual([["MXU", -0.25]]); // the first of each
  const own = matrix(0.5);
  expect(lessBase(own, { ...matrix(0.75), rows: [] })).toBe(own);
});

const tree = (leaves: [scope: string, op: string, time: number][]): Tree => {
  const all = leaves.reduce((s, [, , t]) => s + t, 0);
  const columns: Tree["columns"] = [{ id: "self_time", label: "Self time", unit: "ps", type: "number" }, { id: "flop_utilization", label: "FLOP use", unit: "fraction", type: "number" }, { id: "op", label: "Op", unit: "", type: "op" }, { id: "program_id", label: "Program", unit: "", type: "text" }];
  const nodes: Tree["nodes"] = [{ parent: -1, name: "all ops", values: [all, null, null, null] }];
  for (const [scope, op, time] of leaves) {
    let at = nodes.findIndex((n) => n.name === scope);
    if (at < 0) at = nodes.push({ parent: 0, name: scope, values: [0, null, null, null] }) - 1;
    nodes[at]!.values[0] = Number(nodes[at]!.values[0]) + time;
    nodes.push({ parent: at, name: op, values: [time, op.startsWith("dot") ? 0.5 : null, op, "1"] });
  }
  return { id: "by_scope", columns, nodes, total_nodes: nodes.length };
};

test("nodes of a tree are matched by their path, ops by what they are", () => {
  const base: Base = { run: "b", report: asReport({ tree: tree([["mlp", "fusion.3", 40]]) }), scale: { cores: 1, hosts: 1, words: "" }, ops: { was: new Map([["1\u0001fusion.7", { time: 40, match: "same" }]]), gone: { rows: 0, sum: 0 } } };
  const t = comparedTree(tree([["mlp", "fusion.7", 30], ["attention", "dot.1", 5]]), base);
  expect(t.nodes.map((n) => n.values.slice(0, 3))).toEqual([[35, 40, -5], [30, 40, -10], [30, 40, -10], [5, null, 5], [5, null, 5]]);
  expect(t.nodes[1]!.values[3]).toBe(2); // of -5 in all
});

test("a tree the other way round tells of each kind of op who called it, and what it took in all", () => {
  const t = inverted(tree([["mlp", "fusion.7", 30], ["attention", "fusion.8", 10], ["attention", "dot.1", 5], ["mlp", "dot.2", 15]]));
  expect(t.nodes.map((n) => [n.parent, n.name, n.values[0], n.values[1]])).toEqual([
    [-1, "fusion", 40, null], [0, "mlp", 30, null], [0, "attention", 10, null], [-1, "dot", 20, 0.5], [3, "attention", 5, 0.5], [3, "mlp", 15, 0.5],
  ]);
  expect(t.nodes[0]!.values[2]).toBe(null); // several ops
  expect(t.nodes[1]!.values[2]).toBe("fusion.7");
});

test("the base is in the address, goes with it from page to page, and is no business of the tool's", () => {
  const s = parseTool("?run=r&base=old+run&q=x&view=icicle");
  expect(s.base).toBe("old run");
  expect(elsewhere(s)).toBe("?run=r&base=old%20run");
  expect(timelineHref("/p/l/", s, { begin: null })).toContain("&base=old%20run");
  expect(toolArguments(s)).toEqual({});
});

test("a tree is filtered as a table is, and what matches within what matches counts once", () => {
  const t = tree([["mlp", "fusion.7", 30], ["attention", "fusion.8", 10], ["attention", "dot.1", 5]]);
  expect(found(t, "fusion")!.own).toEqual([2, 4]);
  expect([...found(t, "self_time>8 attention")!.keep].sort()).toEqual([0, 3]);
  expect(found(t, "name:attention")!.own).toEqual([3]);
  expect([...found(t, "flop>10% dot")!.keep].sort()).toEqual([0, 3, 5]);
  expect(found(t, "size>4")!.errors).toEqual(["no column “size”"]);
  expect(found(t, " ")).toBe(null);
  expect(found(t, "o")!.own).toEqual([0]); // all ops
});

test("a tree is a table with paths elsewhere", () => {
  const csv = treeCsv(tree([["mlp", "=cmd", 30]])).split("\r\n");
  expect(csv[0]).toBe("path,name,self_time (ps),flop_utilization (fraction),op,program_id");
  expect(csv[3]).toBe("all ops > mlp > =cmd,'=cmd,30,,'=cmd,1");
});

test("a group leads to its rows, a host to its timeline", () => {
  const s = parseTool("?run=r&base=b&steps=3");
  const table = (id: string): Table => ({ id, title: "", note: null, rows: [], total_rows: 0, rest: null, sort: null, columns: [{ id: "host", label: "Name", unit: "", type: "text" }] });
  expect(groupHref(groupOf(table("categories"))!, table("categories"), ["loop fusion"], s, "/p/l/")).toBe("/p/l/hlo_stats?run=r&steps=3&q=category%3D%22loop%20fusion%22&base=b");
  expect(groupHref(groupOf(table("host_types"))!, table("host_types"), ["(none)"], s, "/p/l/")).toBe("");
  expect(groupOf(table("kernels"))).toBe(null);
  expect(hostHref(table("hosts"), ["w-1"], s, "/p/l/")).toBe("/p/l/trace?run=r&host=w-1&steps=3&base=b");
  expect(hostHref(table("units"), ["w-1"], s, "/p/l/")).toBe("");
});
