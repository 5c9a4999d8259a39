import { expect, test } from "vitest";
import type { Line, Plane } from "../src/api/types";
import { layoutRows } from "../src/layout/rows";
import { curveValue, scaleOf, valueAt } from "../src/views/trace/curves";

test("a value holds until the next one", () => {
  const s = { t0: 100n, t: Float64Array.of(0, 10, 20), v: Float64Array.of(1, 2, 3), low: 1, high: 3, from: 0, to: 3 };
  expect([99n, 100n, 109n, 110n, 500n].map((t) => valueAt(s, t))).toEqual([-1, 0, 0, 1, 2]);
});

test("a scale begins at 0 unless that hides what changes", () => {
  expect(scaleOf(1, 10)).toEqual({ from: 0, to: 10 });
  const { from, to } = scaleOf(900, 1000);
  expect(from).toBeLessThan(900);
  expect(from).toBeGreaterThan(800);
  expect(to).toBe(1000);
  expect(scaleOf(5, 5)).toEqual({ from: 0, to: 5 });
  expect(scaleOf(0, 0).to).toBeGreaterThan(0);
});

test("values are shown in the unit that their name tells", () => {
  expect(curveValue("bytes_in_use", 3 * 2 ** 30)).toBe("3.00 GiB");
  expect(curveValue("dma_stall_ps", 2_000_000)).toBe("2.000 µs");
  expect(curveValue("other", 12)).toBe("12");
});

test("curves are rows below their line, pinned ones too", () => {
  const lines: Line[] = [0, 1].map((line) => ({ line, id: line, name: `l${line}`, events: 1, lanes: 1, begin_ps: 0, end_ps: 9, derived: false, odd: 0, overflow: 0 }));
  const plane: Plane = { plane: 0, name: "p", state: "ready", events: 2, kind: "host", lines };
  const curves = new Map([[0, [{ stat: "a", series: 0, name: "" }, { stat: "b", series: 0, name: "" }]]]);
  const of = (pins: number[]) => layoutRows([plane], new Set(), new Set(), pins, new Set(), curves);
  expect(of([]).rows.map((r) => (r.line ? (r.curve?.stat ?? r.line.line) : "plane"))).toEqual(["plane", 0, "a", "b", 1]);
  expect(of([]).byLine.get(0)!.curve).toBeUndefined();
  expect(of([0]).pinned.map((r) => r.curve?.stat ?? "")).toEqual(["", "a", "b"]);
  expect(of([0]).rows).toHaveLength(2);
});
