import { expect, test } from "vitest";
import { toDot } from "../src/model/dot";
import type { Tree } from "../src/api/report";
import { seriesColours } from "../src/charts/colours";
import { byOffset, bySize, type Buffer } from "../src/model/lifetimes";
import { matrixOf, measuresOf, pivot, rowOrder } from "../src/model/matrix";
import { layered } from "../src/charts/layered";
import { nested } from "../src/charts/nested";
import { linearAxis, logAxis, niceStep, thin } from "../src/charts/scale";
import { familyOf, icicle, matching, visibleRows } from "../src/model/treemodel";
import { number } from "../src/model/units";

test("steps are 1, 2 or 5 times a power of ten", () => {
  expect([0.7, 1, 1.5, 3, 7, 99].map(niceStep)).toEqual([1, 1, 2, 5, 10, 100]);
});

test("an axis holds its values, in the unit that fits", () => {
  const a = linearAxis(0, 13.4e9, "ps");
  expect(a.title).toBe("ms");
  expect(a.max).toBeGreaterThanOrEqual(13.4e9);
  expect(a.ticks[0]!.text).toBe("0");
  expect(linearAxis(0, 3 * 1024 ** 3, "bytes").title).toBe("GiB");
  expect(linearAxis(5, 5, "").ticks.length).toBeGreaterThan(1);
});

test("a log axis covers its values with ticks that do not collide", () => {
  const a = logAxis(0.3, 4e5, "", number);
  expect(a.min).toBeLessThanOrEqual(0.3);
  expect(a.max).toBeGreaterThanOrEqual(4e5);
  expect(a.ticks.length).toBeLessThan(9);
  expect(thin(100, 500, 50)).toBe(10);
});

test("names that mean something have the timeline's colour, others one each", () => {
  expect(seriesColours(["compute", "idle", "all-reduce"])).toEqual(["var(--k-compute)", "var(--k-idle)", "var(--k-communication)"]);
  expect(new Set(seriesColours(["a", "b", "c", "d"])).size).toBe(4);
});

test("a heat map knows its slowest row, and gaps are no zeros", () => {
  const s = { id: "h", title: "", x: { label: "step", unit: "", type: "number" as const }, y: { label: "t", unit: "ps" }, kind: "heat" as const, names: ["w-10", "w-2"], points: [[0, 5, 1], [1, null, 2]], total_points: 2, reduced: false };
  const m = matrixOf(s);
  expect([m.low, m.high]).toEqual([1, 5]);
  expect(m.means[0]).toBe(5);
  expect(rowOrder(m, s.names, "late")).toEqual([0, 1]);
  expect(rowOrder(m, s.names, "name")).toEqual([1, 0]);
});

test("the long form of a heat map is turned into rows by columns", () => {
  const s = { id: "h", title: "", x: { label: "step", unit: "", type: "number" as const }, y: { label: "t", unit: "ps" }, kind: "heat" as const,
    names: ["host", "own_time", "step_time"], points: [[7, 0, 1, 10], [7, 1, 2, 20], [8, 0, 3, 30], [8, 1, null, 40], [8, 1e9, 1, 1]], total_points: 5, reduced: false };
  expect(measuresOf(s)).toEqual(["own_time", "step_time"]);
  expect(pivot(s, "own_time", ["a", "b"])).toMatchObject({ names: ["a", "b"], points: [[7, 1, 2], [8, 3, null]] });
  expect(pivot(s, "step_time", ["a"])).toMatchObject({ names: ["a", "host 1"], points: [[7, 10, 20], [8, 30, 40]] });
});

test("operands stand above their users, a cycle ends, and nothing overlaps", () => {
  const p = layered([100, 100, 100, 100], 40, [{ from: 0, to: 1 }, { from: 1, to: 2 }, { from: 0, to: 2 }, { from: 0, to: 3 }]);
  expect(p.y[0]!).toBeLessThan(p.y[1]!);
  expect(p.y[1]!).toBeLessThan(p.y[2]!);
  expect(Math.abs(p.x[1]! - p.x[3]!)).toBeGreaterThanOrEqual(100);
  expect(layered([50, 50], 40, [{ from: 0, to: 1 }, { from: 1, to: 0 }]).x).toHaveLength(2);
  expect(layered([], 40, []).width).toBe(0);
  // Sixty operands of one op stand in rows of ten, none over another.
  const many = layered(new Array<number>(61).fill(100), 40, Array.from({ length: 60 }, (_, i) => ({ from: i, to: 60 })));
  expect(many.width).toBeLessThan(1500);
  for (let i = 0; i < 60; i++) for (let k = 0; k < i; k++) expect(many.y[i] !== many.y[k] || Math.abs(many.x[i]! - many.x[k]!) >= 100).toBe(true);
  expect(Math.max(...many.y.slice(0, 60)) + 40).toBeLessThan(many.y[60]!);
  expect(many.y[60]! + 40).toBe(many.height);
});

test("what is inside of an op lies in it, in layers of its own, and what is around keeps clear", () => {
  // 0 -> 1 (open: 2 -> 3, 3 open: 4) -> 5, and 0 is called 2 inside of 1
  const within = [-1, -1, 1, 1, 3, -1];
  const edges = [{ from: 0, to: 1 }, { from: 0, to: 2 }, { from: 2, to: 3 }, { from: 2, to: 4 }, { from: 1, to: 5 }];
  const p = nested([100, 100, 120, 130, 140, 100], 40, within, edges);
  const inside = (i: number, c: number): boolean =>
    p.x[i]! - p.w[i]! / 2 >= p.x[c]! - p.w[c]! / 2 && p.x[i]! + p.w[i]! / 2 <= p.x[c]! + p.w[c]! / 2 && p.y[i]! > p.y[c]! && p.y[i]! + p.h[i]! < p.y[c]! + p.h[c]!;
  expect([inside(2, 1), inside(3, 1), inside(4, 3), inside(4, 1)]).toEqual([true, true, true, true]);
  expect(p.y[0]! + p.h[0]!).toBeLessThan(p.y[1]!);
  expect(p.y[1]! + p.h[1]!).toBeLessThan(p.y[5]!);
  expect(p.y[2]! + p.h[2]!).toBeLessThan(p.y[3]!);
  for (let i = 0; i < within.length; i++) expect(p.x[i]! + p.w[i]! / 2 <= p.width && p.y[i]! + p.h[i]! <= p.height).toBe(true);
  // What holds itself, or each other, is drawn all the same.
  expect(nested([10, 10], 10, [1, 0], [{ from: 0, to: 1 }]).x.every(Number.isFinite)).toBe(true);
});

test("the most that is ever drawn is laid out at once", () => {
  const n = 400;
  const within = Array.from({ length: n }, (_, i) => (i > 100 ? i % 20 : -1));
  const edges = Array.from({ length: 10_000 }, (_, i) => ({ from: (i * 7) % n, to: (i * 13 + 1) % n }));
  const p = nested(new Array<number>(n).fill(100), 46, within, edges);
  expect(p.x.every(Number.isFinite) && p.y.every(Number.isFinite)).toBe(true);
});

const tree: Tree = {
  id: "t", columns: [{ id: "self_time", label: "", unit: "ps", type: "number" }], total_nodes: 5,
  nodes: [{ parent: -1, name: "all", values: [100] }, { parent: 0, name: "fusion", values: [60] }, { parent: 0, name: "copy", values: [40] },
    { parent: 1, name: "fusion.1", values: [10] }, { parent: 1, name: "fusion.2", values: [50] }],
};

test("a tree shows what is open, ordered within each parent", () => {
  const f = familyOf(tree);
  const names = (open: (i: number) => boolean, keep: Set<number> | null = null): string[] => visibleRows(tree, f, open, 0, true, keep).map((i) => tree.nodes[i]!.name);
  expect(names(() => false)).toEqual(["all"]);
  expect(names(() => true)).toEqual(["all", "fusion", "fusion.2", "fusion.1", "copy"]);
  expect(names(() => true, matching(tree, "fusion.1"))).toEqual(["all", "fusion", "fusion.1"]);
});

test("boxes are as wide as their share, below their parents", () => {
  const boxes = new Map(icicle(tree, familyOf(tree), 0, -1, 0).map((s) => [tree.nodes[s.node]!.name, s]));
  expect(boxes.get("fusion")).toMatchObject({ x: 0, width: 0.6, depth: 1 });
  expect(boxes.get("copy")).toMatchObject({ x: 0.6, width: 0.4 });
  expect(boxes.get("fusion.2")!.width).toBeCloseTo(0.5);
});

test("a tree of a hundred thousand levels is no problem", () => {
  const deep: Tree = { ...tree, nodes: Array.from({ length: 100_000 }, (_, i) => ({ parent: i - 1, name: `n${i}`, values: [1] })) };
  const f = familyOf(deep);
  expect(visibleRows(deep, f, () => true, -1, true, null)).toHaveLength(100_000);
  expect(icicle(deep, f, 0, -1, 0).length).toBe(100_000);
});

test("a graph in Graphviz's language keeps hostile names as text", () => {
  const nodes = [
    { id: 'a"];evil[label="', opcode: "add", shape: "f32[8]", share: 0.25, within: -1, opened: true }, { id: "b\\\nc", opcode: "", shape: "", share: NaN, within: 0, opened: false, mark: "added" as const },
  ];
  const text = toDot('x"', nodes, [{ from: 0, to: 1, kind: "operand", changes: "order", fromLayout: "{1,0}", toLayout: '{0,1}"' }]);
  expect(text).toContain('digraph "x\\"" {');
  expect(text).toContain('n0 [label="a\\"];evil[label=\\"", tooltip="add, f32[8], 25.00 % of the time"];');
  expect(text).toContain('n1 [label="+ b\\\\ c", tooltip=""];');
  expect(text).toContain('subgraph cluster_0 {');
  expect(text).toContain('n0 -> n1 [style=dashed, label="order: {1,0} \u2192 {0,1}\\""];');
});

test("buffers stand on each other by size, or in their allocations at their offsets with the gaps between", () => {
  const of = (key: string, size: number, place: Buffer["place"], end = 5): Buffer => ({ key, name: key, begin: 0, end, size, kind: "Temporary", place, facts: [] });
  const all = [of("small", 10, null), of("late", 30, { allocation: 7, offset: 50 }), of("early", 20, { allocation: 7, offset: 0 }), of("argument", 5, { allocation: 2, offset: 0 }, 9)];
  const told = (v: ReturnType<typeof bySize>) => v.map(({ b, base }) => `${b.key} ${base}`);
  expect(told(bySize(all, 9))).toEqual(["argument 0", "late 5", "early 35", "small 55"]);
  expect(told(byOffset(all, 9))).toEqual(["argument 0", "early 5", "late 55", "small 85"]);
});
