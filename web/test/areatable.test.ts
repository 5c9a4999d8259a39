import { expect, test } from "vitest";
import type { AggregateRow } from "../src/api/types";
import { filterArea } from "../src/model/areatable";

const row = (name: string, plane: number, count: number, self_ps: number): AggregateRow =>
  ({ name, plane, count, self_ps, total_ps: self_ps * 2, min_ps: 1, max_ps: self_ps, mean_ps: 1, p50_ps: 1, p99_ps: 1, longest_id: 1 }) as AggregateRow;
const rows = [row("fusion.1", 0, 4, 12_000_000), row("fusion.2", 1, 2, 3_000_000), row("copy", 0, 1, 20_000_000)];
const plane = (n: number): string => ["TPU:0", "TPU:1"][n]!;
const names = (q: string): string[] => filterArea(rows, plane, q).rows.map((r) => r.name);

test("the area's table is filtered by words, amounts with units, planes and expressions", () => {
  expect(names("")).toEqual(["fusion.1", "fusion.2", "copy"]);
  expect(names("fusion -TPU:1")).toEqual(["fusion.1"]);
  expect(names("self>10us")).toEqual(["fusion.1", "copy"]);
  expect(names("count>=2 plane:TPU:0")).toEqual(["fusion.1"]);
  expect(names("/^fus.*2$/")).toEqual(["fusion.2"]);
});

test("what is left is summed up exactly, and what makes no sense is told", () => {
  expect(filterArea(rows, plane, "fusion")).toMatchObject({ count: 6, self: 15_000_000n, errors: [] });
  expect(filterArea(rows, plane, "self>x").errors.length).toBe(1);
});
