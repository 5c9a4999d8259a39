import { expect, test } from "vitest";
import { asReport, type Report } from "../src/api/report";
import { basisOf, checkWorkload, findingPairs, matchOps, moduleBase, opBase, opsOf, pairTable, partsByOp, partsOf, partsOfText, type Op } from "../src/model/compare";

const op = (name: string, time: number, more: Partial<Op> = {}): Op => ({
  name, time, program: "1", module: "jit_train", opcode: opBase(name), shapes: "f32[8]", framework: "", source: "", category: "fusion", count: 1, text: "", ...more,
});
const metric = (id: string, value: number | string | null) => ({ id, label: id, unit: "", value, reason: null, note: null, definition: "", spread: null });
const report = (metrics: Record<string, number | string | null>): Report =>
  asReport({ metrics: Object.entries(metrics).map(([id, v]) => metric(id, v)) });

test("names lose the numbers of their compilation", () => {
  expect(moduleBase("jit_train(12190760917235803885)")).toBe("jit_train");
  expect(opBase("%fusion.12.clone.3")).toBe("fusion");
  expect(opBase("all-reduce.1")).toBe("all-reduce");
  expect(opBase("broadcast_add_fusion")).toBe("broadcast_add_fusion");
});

test("an instruction's text gives its opcode and its shapes without layouts", () => {
  expect(partsOfText("%fusion.7 = f32[1024,1024]{1,0:T(8,128)} fusion(f32[1024,8]{1,0} %a, bf16[8]{0} %b), kind=kLoop"))
    .toEqual({ opcode: "fusion", shapes: "f32[1024,1024] f32[1024,8] bf16[8]" });
  expect(partsOfText("%infeed.1 = (f32[64,64]{1,0}, token[]) infeed(token[] %t)").opcode).toBe("infeed");
  expect(partsOfText("").opcode).toBe("");
  expect(partsOfText("%x = (((((").opcode).toBe("");
});

test("a program compiled again matches op by op, whatever its numbers are", () => {
  const pairs = matchOps(
    [op("fusion.1", 10), op("fusion.2", 20, { shapes: "f32[16]" })],
    [op("fusion.9", 11, { program: "2" }), op("fusion.8", 25, { program: "2", shapes: "f32[16]" })],
  );
  expect(pairs.map((p) => [p.a?.name, p.b?.name, p.match])).toEqual([["fusion.1", "fusion.9", "same"], ["fusion.2", "fusion.8", "same"]]);
});

test("of several alike those of one name belong together, the others by their order", () => {
  const pairs = matchOps([op("copy.1", 1), op("copy.2", 2), op("copy.3", 3)], [op("copy.2", 2), op("copy.4", 4), op("copy.9", 9)]);
  expect(pairs.map((p) => [p.a?.name, p.b?.name])).toEqual([["copy.2", "copy.2"], ["copy.1", "copy.4"], ["copy.3", "copy.9"]]);
});

test("new, gone, moved and reshaped ops are told apart", () => {
  const pairs = matchOps(
    [op("fusion.1", 1, { framework: "jit(f)/dot" }), op("sort.1", 2), op("add.1", 3, { module: "jit_init", shapes: "s32[3]" })],
    [op("fusion.1", 1, { framework: "jit(f)/dot", shapes: "f32[99]" }), op("gather.1", 2, { category: "gather" }), op("add.1", 3, { shapes: "s32[3]" })],
  );
  expect(new Map(pairs.map((p) => [(p.b ?? p.a)!.name, p.match]))).toEqual(
    new Map([["fusion.1", "new shapes"], ["sort.1", "removed"], ["gather.1", "added"], ["add.1", "moved"]]),
  );
});

test("every op is in one pair only", () => {
  const a = Array.from({ length: 200 }, (_, i) => op(`fusion.${i}`, i, { shapes: `f32[${i % 7}]` }));
  const b = Array.from({ length: 150 }, (_, i) => op(`fusion.${i + 3}`, i, { shapes: `f32[${i % 5}]` }));
  const pairs = matchOps(a, b);
  expect(new Set(pairs.flatMap((p) => (p.a ? [p.a] : []))).size).toBe(200);
  expect(new Set(pairs.flatMap((p) => (p.b ? [p.b] : []))).size).toBe(150);
  expect(pairs.filter((p) => p.a).length + pairs.filter((p) => p.b).length).toBe(350);
});

test("the parts lead from the one step time to the other", () => {
  const basis = basisOf(report({ steps: 2, cores: 2, step_time_mean: 100 }), report({ steps: 2, cores: 2, step_time_mean: 140 }));
  const pairs = matchOps([op("fusion.1", 200)], [op("fusion.1", 320), op("sort.5", 40, { category: "sort" })]);
  const { parts, totalA, totalB } = partsOf(pairs, basis);
  expect(basis.perStep).toBe(true);
  expect(totalA + parts.reduce((s, p) => s + p.b - p.a, 0)).toBeCloseTo(totalB);
  expect(parts.find((p) => p.name === "fusion")).toEqual({ name: "fusion", a: 50, b: 80 });
  expect(parts.find((p) => p.name === "outside of ops")).toEqual({ name: "outside of ops", a: 50, b: 50 });
});

test("op by op the parts lead there, too, the largest change first, the others together", () => {
  const basis = basisOf(report({ steps: 1, cores: 1, step_time_mean: 1000 }), report({ steps: 1, cores: 1, step_time_mean: 1300 }));
  const a = [op("fusion.1", 100), op("dot.1", 500, { opcode: "dot" }), op("old.1", 30, { opcode: "old" }), op("add.1", 10, { opcode: "add" })];
  const b = [op("fusion.1", 101), op("dot.1", 700, { opcode: "dot" }), op("new.1", 90, { opcode: "new" }), op("add.1", 10, { opcode: "add" })];
  const parts = partsByOp(matchOps(a, b), basis, 3);
  expect(parts.map((p) => [p.name, p.b - p.a])).toEqual([["dot.1", 200], ["new.1", 90], ["old.1", -30], ["2 other ops", 1], ["outside of ops", 39]]);
  expect(basis.totalA + parts.reduce((s, p) => s + p.b - p.a, 0)).toBeCloseTo(basis.totalB);
});

test("findings of two runs stand side by side, what is new and gone among them", () => {
  const of = (...rows: [string, number][]): Report => asReport({
    tables: [{
      id: "findings", title: "", note: null, total_rows: rows.length, rest: null, sort: null, rows: rows.map(([rule, share]) => [rule, share, `about ${rule}`]),
      columns: [{ id: "rule", label: "", unit: "", type: "text" }, { id: "share", label: "", unit: "fraction", type: "number" }, { id: "finding", label: "", unit: "", type: "text" }],
    }],
  });
  const pairs = findingPairs(of(["idle", 0.2], ["copies", 0.1]), of(["idle", 0.25], ["input_bound", 0.4]));
  expect(pairs.map((p) => [p.rule, p.a, p.b, p.text])).toEqual([["input_bound", NaN, 0.4, "about input_bound"], ["copies", 0.1, NaN, "about copies"], ["idle", 0.2, 0.25, "about idle"]]);
  expect(findingPairs(asReport({}), asReport({}))).toEqual([]);
  const peaks = findingPairs(of(["hbm_bound", 0.7], ["idle", 0.1]), of(["low_utilization", 0.4], ["compute_bound", 0.8]));
  expect(Object.fromEntries(peaks.map((p) => [p.rule, p.of]))).toEqual({ hbm_bound: "of the peak", compute_bound: "of the peak", low_utilization: "unused, of the peak", idle: "" });
});

test("a program that was compiled anew is told, as what it was compiled by is not", () => {
  const pairs = matchOps([op("fusion.1", 10, { program: "1" })], [op("fusion.1", 10, { program: "2" })]);
  expect(checkWorkload(report({ steps: 1 }), report({ steps: 1 }), pairs)).toEqual([{ severity: "info", text: expect.stringMatching(/Compiled anew: jit_train\./) as string }]);
});

test("an op that got twice as slow is the first row", () => {
  const a = [op("fusion.1", 1000), op("dot.1", 500, { opcode: "dot" }), op("add.1", 10, { opcode: "add" })];
  const b = [op("fusion.1", 1001), op("dot.1", 1000, { opcode: "dot" }), op("add.1", 10, { opcode: "add" })];
  const table = pairTable(matchOps(a, b), basisOf(report({}), report({})));
  expect(table.rows[0]![0]).toBe("dot.1");
  expect(table.rows[0]![6]).toBe(2);
});

test("unlike machines, programs and missing steps are warned about", () => {
  const a = report({ device_type: "TPU v5", cores: 4, hosts: 1, steps: null });
  const b = report({ device_type: "TPU v6", cores: 8, hosts: 1, steps: 3 });
  const pairs = matchOps([op("fusion.1", 10)], [op("sort.1", 10, { module: "jit_eval", category: "sort" })]);
  const texts = checkWorkload(a, b, pairs).map((w) => w.text).join("\n");
  expect(texts).toMatch(/device/);
  expect(texts).toMatch(/cores/);
  expect(texts).not.toMatch(/as many hosts/);
  expect(texts).toMatch(/A has no steps/);
  expect(texts).toMatch(/Only in A: jit_train/);
  expect(texts).toMatch(/different models/);
});

test("ops are found in a report whatever their columns are called", () => {
  const r = asReport({
    tables: [{
      id: "ops", title: "", note: null, total_rows: 1, rest: null, sort: null,
      columns: [{ id: "program_id", label: "", unit: "", type: "text" }, { id: "hlo", label: "", unit: "", type: "op" }, { id: "self_time", label: "", unit: "ps", type: "number" },
        { id: "expression", label: "", unit: "", type: "text" }],
      rows: [["7", "dot.3", 5, "%dot.3 = f32[2]{0} dot(f32[2] %a)"]],
    }],
  });
  expect(opsOf(r)).toMatchObject([{ name: "dot.3", program: "7", time: 5, opcode: "dot", shapes: "f32[2] f32[2]" }]);
});

test("long names and texts are read in one pass", () => {
  expect(opBase(`a${".1".repeat(50)}`)).toBe("a");
  expect(opBase("fusion.12_3x")).toBe("fusion.12_3x");
  expect(opBase("123")).toBe("123");
  expect(opBase("%fusion.12.clone.3")).toBe("fusion");
  const many = 400_000;
  expect(opBase(`a${".1".repeat(many)}x`)).toHaveLength(2 * many + 2);
  expect(partsOfText(`%x = f32[1] ${"a".repeat(many)} add(f32[2]{0} %b)`)).toEqual({ opcode: "add", shapes: "f32[1] f32[2]" });
  expect(partsOfText("%x = (f32[1], s32[]) 9while(%b)").opcode).toBe("while");
});
