import { describe, expect, it } from "vitest";
import { asReport } from "../src/api/report";
import { copyOf, flipName, graphPath, namesOf, pieces, programFiles, referred, trailOf } from "../src/model/graph";

describe("the graph's address", () => {
  it("names what is expanded, each once", () => {
    expect(flipName("", "a.1")).toBe("a.1");
    expect(flipName("a.1", "b")).toBe("a.1,b");
    expect(flipName("a.1,b", "a.1")).toBe("b");
    expect(namesOf("a,,b")).toEqual(["a", "b"]);
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
    expect(files.map((f) => f.name)).toEqual(["jit_f_7_.txt", "jit_f_7_.hlo.pb", "jit_f_7_.pbtxt"]);
    expect(files[1]!.href).toBe("data/plugin/profile/data?run=a%2Fb&tag=graph_viewer&host=w+0&module_name=jit_f%287%29&type=pb");
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
