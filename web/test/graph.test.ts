import { describe, expect, it } from "vitest";
import { asReport } from "../src/api/report";
import { addName, copyOf, drawnEdges, dropName, flipName, graphOf, graphPath, layoutLabel, namesOf, pieces, programFiles, referred, trailOf } from "../src/model/graph";
import { changeTable, compBase, diffPrograms, markGraph, plainShape, programOps, type ProgramOp } from "../src/model/graphdiff";
import { escaped, graphPage } from "../src/model/graphfile";

describe("the graph's address", () => {
  it("names what is expanded, each once", () => {
    expect(flipName("", "a.1")).toBe("a.1");
    expect(flipName("a.1", "b")).toBe("a.1,b");
    expect(flipName("a.1,b", "a.1")).toBe("b");
    expect(namesOf("a,,b")).toEqual(["a", "b"]);
  });

  it("asks for more of an op's neighbours as often as one likes, and for none again", () => {
    expect(addName(addName("a", "b"), "b")).toBe("a,b,b");
    expect(dropName("a,b,b,c", "b")).toBe("a,c");
  });

  it("keeps the way one came, the last last, no op twice, and not for ever", () => {
    expect(trailOf("", "a", "b")).toBe("a");
    expect(trailOf("a,b", "c", "a")).toBe("b,c");
    expect(trailOf("a", "b", "b")).toBe("a");
    expect(namesOf(trailOf("1,2,3,4,5,6,7,8", "9", "x"))).toHaveLength(8);
  });
});

describe("the graph's report", () => {
  const table = (id: string, columns: string[], rows: string[][]) => ({
    id, title: "", note: null, columns: columns.map((c) => ({ id: c, label: c, unit: "", type: "text" as const })), rows, total_rows: rows.length, rest: null, sort: null,
  });

  it("tells the way from the program to the op", () => {
    const r = asReport({ tables: [table("nodes", ["op", "computation"], [["add.1", "body"], ["x", "other"]]), table("path", ["op", "computation"], [["while.2", "main"]])] });
    expect(graphPath(r)).toEqual({ computations: ["main", "body"], ops: ["while.2"] });
    expect(graphPath(asReport({}))).toEqual({ computations: [], ops: [] });
  });

  it("gives the program as files, where it knows which", () => {
    const r = asReport({ hosts: ["w 0"], tables: [table("modules", ["module", "program_id"], [["jit_f(7)", "7"]])] });
    const files = programFiles(r, "a/b", "7");
    expect(files.map((f) => f.name)).toEqual(["jit_f_7_.short.txt", "jit_f_7_.txt", "jit_f_7_.metadata.txt", "jit_f_7_.hlo.pb", "jit_f_7_.pbtxt"]);
    expect(files[2]!.href).toContain("type=long_txt&show_metadata=true");
    expect(files[3]!.href).toBe("data/plugin/profile/data?run=a%2Fb&tag=graph_viewer&hosts=w+0&module_name=jit_f%287%29&type=pb");
    expect(programFiles(r, "a/b", "8")).toEqual([]);
    expect(programFiles(asReport({}), "a/b", "")).toEqual([]);
  });

  it("knows ops that only move data", () => {
    expect(["copy", "copy-start", "copy-done"].every(copyOf)).toBe(true);
    expect(["fusion", "copy_fusion", "transpose"].some(copyOf)).toBe(false);
  });
});

describe("HLO text", () => {
  it("falls into pieces that are names and what is between them, and nothing is lost", () => {
    const line = "%fusion.4 = f32[8]{0} fusion(%copy-done.1, %p), calls=%c.clone, a=50%, b=%";
    expect(pieces(line).join("")).toBe(line);
    expect(pieces(line).map(referred).filter(Boolean)).toEqual(["fusion.4", "copy-done.1", "p", "c.clone"]);
  });

  it("with hostile names stays text", () => {
    expect(pieces("%<img src=x>").map(referred).filter(Boolean)).toEqual([]);
    expect(referred("%a\"b")).toBe("");
  });
});

const cells = (id: string, columns: string[], rows: (string | number | boolean | null)[][]) => ({
  id, title: "", note: null, columns: columns.map((c) => ({ id: c, label: c, unit: "", type: "text" as const })), rows, total_rows: rows.length, rest: null, sort: null,
});

describe("what is drawn", () => {
  const r = asReport({
    tables: [
      cells("nodes", ["op", "distance", "inside_node", "inner_ops", "opened", "more_users"], [["f", 0, null, 3, true, 2], ["p", 1, null, null, false, 0], ["x", 0, 0, null, false, 0], ["f", 0, 0, null, false, 0]]),
      cells("edges", ["from", "to", "kind", "changes", "from_layout", "to_layout", "from_node", "to_node"], [
        ["p", "f", "operand", "order", "{1,0}", "{0,1}", 1, 0], ["p", "x", "parameter", null, null, null, 1, 2], ["x", "f", "operand", null, null, null, 2, 3], ["p", "f", "control", null, null, null, 1, 0],
      ]),
    ],
  });
  const g = graphOf(r)!;

  it("goes by rows, as names in two computations may be alike", () => {
    expect(g.nodes.map((n) => n.within)).toEqual([-1, -1, 0, 0]);
    expect(g.edges.map((e) => [e.from, e.to, e.kind])).toEqual([[1, 0, "operand"], [1, 2, "parameter"], [2, 3, "operand"], [1, 0, "control"]]);
    expect(g.middle).toBe("f");
    expect(g.nodes[0]).toMatchObject({ inner: 3, opened: true, more: 2 });
  });

  it("leads operands on to what they are called inside, and waits stay", () => {
    expect(drawnEdges(g.nodes, g.edges)).toEqual([false, true, true, true]);
  });

  it("says both layouts, or the memories alone", () => {
    expect(layoutLabel(g.edges[0]!)).toEqual(["{1,0}", "\u2192 {0,1}"]);
    expect(layoutLabel({ changes: "memory", fromLayout: "{0:T(8)S(5)}", toLayout: "{0:T(8)}" })).toEqual(["S(5) \u2192 S(0)"]);
    expect(layoutLabel(g.edges[1]!)).toEqual([]);
  });

  it("as a page of its own is text and a picture: no script, and a policy that allows none", () => {
    const evil = '"><script>alert(1)</script><img src=x onerror=alert(1)>';
    const page = graphPage({ title: evil, facts: [[evil, evil]], svg: "<svg><title>&lt;b></title></svg>", nodes: [{ ...g.nodes[0]!, id: evil, shape: evil, computation: evil }, g.nodes[2]!] });
    expect(page).not.toMatch(/<script|<img|onerror=alert\(1\)>/);
    expect(page).toContain("default-src 'none'");
    expect(page.match(/<svg>/g)).toHaveLength(1);
    expect(page).toContain("<td>&quot;&gt;&lt;script&gt;");
    expect(escaped("a&'\u0000")).toBe("a&amp;&#39;\ufffd");
  });
});

describe("two programs", () => {
  const op = (name: string, more: Partial<ProgramOp> = {}): ProgramOp => ({
    name, opcode: name.replace(/\.\d+$/, ""), shape: "f32[8]{0}", comp: "main.1", framework: "", source: "", time: NaN, kind: "", operands: [], noperands: 0, inner: 0, ...more,
  });
  const a = [op("p"), op("sine.1", { operands: [0] }), op("copy.2", { operands: [1], time: 100 }), op("dot.3", { operands: [2], time: 50, framework: "f/dot" }), op("while.7")];
  const b = [op("p"), op("sine.9", { operands: [0], shape: "f32[8]{0:T(128)}" }), op("dot.5", { operands: [1], time: 40, framework: "f/dot", shape: "f32[9]{0}" }), op("exp.1", { operands: [2], time: 7 }), op("while.7")];
  const changes = diffPrograms(a, b);
  const of = (mark: string) => changes.filter((c) => c.mark === mark).map((c) => (c.b >= 0 ? b[c.b]!.name : a[c.a]!.name));

  it("match by what ops are; what differs is said", () => {
    expect(of("added")).toEqual(["exp.1"]);
    expect(of("removed")).toEqual(["copy.2"]);
    expect(of("changed").sort()).toEqual(["dot.5", "sine.9"]);
    expect(changes.find((c) => c.b === 1)!.what).toEqual(["layout"]);
    expect(changes.find((c) => c.b === 2)!.what).toEqual(["shape"]);
    expect(of("same")).toEqual(["p", "while.7"]);
    expect(["main.9_spmd", "wide.region_1.3.clone.clone.sunk", "fused_computation"].map(compBase)).toEqual(["main_spmd", "wide.region", "fused_computation"]);
    expect(diffPrograms([op("a", { framework: "jit(f)/mul" })], [op("a", { framework: "jit(g)/mul" })])[0]!.mark).toBe("same");
    expect(plainShape("(f32[8]{0:T(8)}, /*index=5*/s32[]{:T(2)})")).toBe("(f32[8], s32[])");
  });

  it("are marked where they are drawn, with what is gone among them", () => {
    const node = (id: string) => ({ id, opcode: "", shape: "", computation: "main.1", share: NaN, more: 0, open: false, within: -1, inner: 0, opened: false, kind: "", mover: "" });
    const g = markGraph({ nodes: [node("dot.5"), node("sine.9"), node("exp.1")], edges: [], left: 0, middle: "dot.5", program: "1" }, a, b, changes);
    expect(g.nodes.map((n) => [n.id, n.mark])).toEqual([["dot.5", "changed"], ["sine.9", "changed"], ["exp.1", "added"], ["copy.2", "removed"]]);
    expect(g.edges.map((e) => [e.from, e.to, e.gone])).toEqual([[1, 3, true], [3, 0, true]]);
  });

  it("stand in a table, the largest change first, times for as many runs", () => {
    const t = changeTable(a, b, changes, 2, "7", "words");
    expect(t.rows.map((r) => [r[0], r[1], r[3], r[6], r[7], r[8]])).toEqual([
      [null, "copy.2", "\u2212 removed", 200, null, -200], ["dot.5", "dot.3", "\u2260 changed", 100, 40, -60], ["exp.1", null, "+ added", null, 7, 7], ["sine.9", "sine.1", "\u2260 changed", null, null, null],
    ]);
    expect(t.rows.every((r) => r.length === t.columns.length)).toBe(true);
  });

  it("of 50,000 ops that are all alike are matched without looking at each pair", () => {
    const many = (n: number, from: number) => Array.from({ length: n }, (_, i) => op(`add.${i + from}`));
    const all = diffPrograms(many(50_000, 0), many(50_000, 25_000));
    expect(all.every((c) => c.mark === "same")).toBe(true);
  });

  it("are read from the table of all ops", () => {
    const t = cells("ops", ["op", "opcode", "shape", "computation", "self_time", "operand_rows", "operands"], [["a", "add", "f32[]", "m", null, "0 1 x", 3]]);
    expect(programOps(t)[0]).toMatchObject({ name: "a", operands: [0, 1], noperands: 3, time: NaN });
    expect(programOps(undefined)).toEqual([]);
  });
});
