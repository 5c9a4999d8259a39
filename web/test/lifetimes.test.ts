import { expect, test } from "vitest";
import { zoomOf } from "../src/model/lifetimes";

test("steps that a program does not have are not zoomed to", () => {
  expect(zoomOf("2-9", 20)).toEqual([2, 9]);
  expect(zoomOf("2-90", 20)).toEqual([2, 20]);
  for (const other of ["30-90", "20-90", "9-2", "9", "", "-1-5"]) expect(zoomOf(other, 20)).toBeNull();
});
