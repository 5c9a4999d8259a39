import { expect, test } from "vitest";
import type { Column, Table, Tree } from "../src/api/report";
import { fullName, shownColumns } from "../src/model/columns";
import { areaFilter, comparison, kernelNames, kernelSeries, matrixSeries, nameFilter, unusedOf, wasteColour } from "../src/model/hardware";
import { pickOf, rowAgain } from "../src/model/picks";
import { Pattern } from "../src/model/regex";
import { countBelow, familyOf } from "../src/model/treemodel";

const column = (id: string, unit = "", type: Column["type"] = "text"): Column => ({ id, label: id, unit, type });
const table = (id: string, columns: Column[], rows: Table["rows"]): Table => ({ id, title: id, note: null, columns, rows, total_rows: rows.length, rest: null, sort: null });

test("an area takes the place of the one before it and leaves the other words of the filter", () => {
  const area = { x0: 0.25, x1: 4, y0: 1e9, y1: 2.5e12 };
  expect(areaFilter("fusion", "intensity", "flop_rate", area)).toBe("fusion intensity>=0.2500 intensity<=4.000 flop_rate>=1.000e9 flop_rate<=2.500e12");
  expect(areaFilter("fusion intensity>=1 intensity<=2 flop_rate>=3 flop_rate<=4 intensity>9", "intensity", "flop_rate", null)).toBe("fusion intensity>9");
});

test("a name is looked for whole where an expression can hold it", () => {
  const f = nameFilter("fusion.7{1}");
  expect(new Pattern(f.slice(1, -1)).test("fusion.7{1}")).toBe(true);
  expect(new Pattern(f.slice(1, -1)).test("fusion.77{1}")).toBe(false);
  expect(nameFilter("a".repeat(63))).toBe("a".repeat(63));
  expect(nameFilter("é")).toBe("é");
});

test("colours of waste go from used to unused, and what is not known is grey", () => {
  const tree: Tree = {
    id: "t", columns: [column("share", "fraction", "number"), column("wasted", "fraction", "number")], total_nodes: 2,
    nodes: [{ parent: -1, name: "a", values: [0.5, 0.25] }, { parent: 0, name: "b", values: [0.5, null] }],
  };
  expect(countBelow(tree, familyOf(tree), 0, [0])).toBe(2);
  expect(countBelow(tree, familyOf(tree), 0, [1])).toBe(1);
  expect(countBelow(tree, familyOf(tree), 1, [0])).toBe(1); // what has no weight is not too narrow to draw
  expect(unusedOf(tree, 0)).toBe(0.5);
  expect(unusedOf(tree, 1)).toBeNaN();
  expect(wasteColour(0)).not.toBe(wasteColour(1));
  expect(wasteColour(NaN)).toBe("#c3c8d0");
});

test("units against devices: what is beyond the whole is drawn as the whole, and counted", () => {
  const { series, above } = matrixSeries(table("matrix", [column("unit"), column("0", "fraction", "number"), column("1", "fraction", "number")], [["MXU0", 2.5, -0.5], ["XLU0", null, -3]]));
  expect(series.names).toEqual(["MXU0", "XLU0"]);
  expect(series.points).toEqual([["0", 1, null], ["1", -0.5, -1]]);
  expect(above).toBe(2);
});

const kernels = table("kernels", [column("host"), column("device", "", "number"), column("sample", "", "number"), column("kernel"), column("time", "ps", "number"), column("mxu", "fraction", "number"), column("hbm", "fraction", "number")], [
  ["h", 0, 7, "k", 1e6, 0.25, null], ["h", 1, 7, "k", 2e6, 0.75, 0.5],
]);

test("kernels of one name are told apart by where they ran, and two of them are compared unit by unit", () => {
  expect(kernelNames(kernels)).toEqual(["k, device 0", "k, device 1"]);
  expect(kernelSeries(kernels).points).toEqual([["k, device 0", 0.25, null], ["k, device 1", 0.75, 0.5]]);
  const both = comparison(kernels, 0, 1);
  expect(both.rows).toEqual([["mxu", 0.25, 0.75, 0.5], ["hbm", null, 0.5, null]]);
  expect(both.note).toContain("1.000 µs");
});

test("kernels of GPUs are called by their short names, the full one is told, and one of them is chosen by it", () => {
  const t = table("kernels", [column("short_name"), column("kernel")], [["gemm", "void gemm<float>(float*)"]]);
  expect(shownColumns(t, new Set()).columns).toEqual([0]);
  expect(fullName(t, t.rows[0]!, 0)).toBe("void gemm<float>(float*)");
  expect(pickOf(t)?.nameOf(t.rows[0]!)).toBe("void gemm<float>(float*)");
  expect(pickOf(kernels)).toBeNull();
});

test("of several rows with one name it is the clicked one that is chosen, also after the table came anew", () => {
  const t = table("chips", [column("counter"), column("chip", "", "number"), column("value", "", "number")], [["cycles", 0, 10], ["cycles", 1, 10], ["cycles", 1, 12]]);
  const anew = { ...t, rows: t.rows.map((r) => [...r]) };
  expect(rowAgain(t, t.rows[1]!)).toBe(t.rows[1]);
  expect(rowAgain(anew, t.rows[1]!)).toBe(anew.rows[1]);
  expect(rowAgain({ ...t, rows: [t.rows[0]!] }, t.rows[1]!)).toBeNull();
  expect(rowAgain(t, null)).toBeNull();
});
