import { describe, expect, it } from "vitest";
import { asReport } from "../src/api/report";
import { markAt } from "../src/charts/xy";
import { modelsOf, otherSeries, percentileMarks } from "../src/model/latencies";
import { parseTool, toolArguments } from "../src/model/toolurl";

describe("latencies", () => {
  const points = [[100, 3], [110, 1], [120, 2]];

  it("mark a percentile where it lies among the bars", () => {
    expect(markAt(points, 100)).toBe(0);
    expect(markAt(points, 115)).toBe(1.5);
    expect(markAt(points, 130)).toBe(3);
  });

  it("mark nothing beside the bars, nor where one bar is all", () => {
    expect(markAt(points, 99)).toBeNull();
    expect(markAt(points, 131)).toBeNull();
    expect(markAt([[100, 3]], 100)).toBeNull();
    expect(markAt([], 100)).toBeNull();
  });

  it("have a mark for each percentile that is known", () => {
    const metric = (id: string, value: number | null) => ({ id, label: id, unit: "ps", value, reason: value === null ? "no requests" : null, note: null, definition: "", spread: null });
    const r = asReport({ metrics: [metric("latency_p50", 2e9), metric("latency_p90", null), metric("latency_p99", 3e9)] });
    expect(percentileMarks(r)).toEqual([{ at: 2e9, label: "p50 2.000 ms" }, { at: 3e9, label: "p99 3.000 ms" }]);
  });

  it("stand apart from the other charts", () => {
    const series = (id: string) => ({ id, title: id, x: { label: "", unit: "", type: "number" as const }, y: { label: "", unit: "" }, kind: "bar" as const, names: [], points: [], total_points: 0, reduced: false });
    expect(otherSeries(asReport({ series: [series("latencies"), series("breakdown")] })).map((x) => x.id)).toEqual(["breakdown"]);
  });

  it("know the models that are named", () => {
    const table = { id: "models", title: "", note: null, columns: [{ id: "model", label: "", unit: "", type: "text" as const }], rows: [["a"], [null], ["b"]], total_rows: 3, rest: null, sort: null };
    expect(modelsOf(asReport({ tables: [table] }))).toEqual(["a", "b"]);
    expect(modelsOf(asReport({}))).toEqual([]);
  });
});

it("what percentiles are of is the server's argument, how ops are summed up is the page's", () => {
  expect(toolArguments(parseTool("?run=r&by=prefill&model=m&sums=layers&w=2-9"))).toEqual({ by: "prefill", model: "m" });
});
