import { expect, test } from "vitest";
import { fewer, formatLasso, inside, LASSO_MAX, parseLasso, type Point } from "../src/model/lasso";

test("a lasso is in the address with four digits, and comes back", () => {
  const points: Point[] = [[0.123456, 1e9], [100, 2.5e12], [33, 1]];
  expect(formatLasso(points)).toBe("0.1235_1e9,100_2.5e12,33_1");
  expect(parseLasso(formatLasso(points))).toEqual([[0.1235, 1e9], [100, 2.5e12], [33, 1]]);
});

test("what is no lasso is none", () => {
  for (const text of ["", "1_2", "1_2,3_4", "1_2,3_4,x_5", "1_2,3_4,0_5", "1_2,3_4,-1_5", "1_2,3_4,5", Array(LASSO_MAX + 1).fill("1_2").join(",")]) expect(parseLasso(text), text).toBe(null);
});

test("on axes of powers of ten the middle of a side is its geometric mean", () => {
  const triangle: Point[] = [[1, 1], [100, 1], [100, 100]];
  expect(inside(triangle, 50, 10)).toBe(true);
  expect(inside(triangle, 10, 20)).toBe(false);
  expect(inside(triangle, 10, 9)).toBe(true); // below the side from 1, 1 to 100, 100
  expect(inside(triangle, 0, 9)).toBe(false);
  expect(inside(triangle, NaN, 9)).toBe(false);
});

test("a long line keeps its corners, and has no more points than may be", () => {
  const square: Point[] = [];
  for (let i = 0; i < 100; i++) square.push([i, 0]);
  for (let i = 0; i < 100; i++) square.push([100, i]);
  for (let i = 100; i > 0; i--) square.push([i, 100]);
  const few = fewer(square);
  expect(few.length).toBeLessThan(8);
  expect(few).toContainEqual([100, 0]);
  const circle = Array.from({ length: 5000 }, (_, i): Point => [200 + 150 * Math.cos(i / 795), 200 + 150 * Math.sin(i / 795)]);
  expect(fewer(circle).length).toBeLessThanOrEqual(LASSO_MAX);
  expect(fewer(circle).length).toBeGreaterThan(8);
});

test("what a line goes around twice is outside, as it is drawn", () => {
  const square: Point[] = [[1, 1], [100, 1], [100, 100], [1, 100]];
  expect(inside(square, 10, 10)).toBe(true);
  expect(inside([...square, ...square], 10, 10)).toBe(false);
});
