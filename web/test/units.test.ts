import { expect, test } from "vitest";
import { exact, natural, number, parseAmount, share, show, signed, sum } from "../src/model/units";

const plain = (s: string) => s.replace(/\u202f/g, " ");

test("each unit of a report is shown in its own way, and missing values are n/a", () => {
  expect(plain(show(12_345_678, "ps"))).toBe("12.35 µs");
  expect(plain(show(9_007_199_254_740_993n, "ps"))).toMatch(/ s$/);
  expect(show(3 * 1024 ** 3, "bytes")).toBe("3.00 GiB");
  expect(show(1.5 * 1024 ** 4, "bytes/s")).toBe("1.50 TiB/s");
  expect(show(918e12, "flop/s")).toBe("918.0 TFLOP/s");
  expect(show(2e9, "flop")).toBe("2.000 GFLOP");
  expect(show(0.4123, "fraction")).toBe("41.2 %");
  expect(show(null, "ps")).toBe("n/a");
  expect(show(NaN, "ps")).toBe("n/a");
  expect(show(true, "")).toBe("yes");
  expect(plain(show(1234567, "count"))).toBe("1 234 567");
  expect(show("fusion.1", "")).toBe("fusion.1");
});

test("a small share is not called nothing, and nothing is 0", () => {
  expect(share(0)).toBe("0 %");
  expect(share(0.00001)).toBe("<0.01 %");
  expect(share(-0.00001)).toBe(">-0.01 %");
  expect(share(1.12)).toBe("112.0 %");
});

test("the hover has every digit", () => {
  expect(plain(exact(9_007_199_254_740_993n, "ps"))).toBe("9 007 199 254 740.993 ns");
  expect(plain(exact(1536, "bytes"))).toBe("1536 bytes");
  expect(exact(0.25, "fraction")).toBe("0.25 fraction");
});

test("changes have their sign", () => {
  expect(signed(1_200_000, "ps")).toBe("+1.200 µs");
  expect(signed(-1_200_000, "ps")).toBe("\u22121.200 µs");
  expect(signed(0, "ps")).toBe("0 ps");
});

test("amounts are read in the unit of their column", () => {
  expect(parseAmount("10us", "ps")).toBe(1e7);
  expect(parseAmount("10us", "ns")).toBe(1e4);
  expect(parseAmount("5%", "fraction")).toBe(0.05);
  expect(parseAmount("2GiB", "bytes")).toBe(2 * 1024 ** 3);
  expect(parseAmount("3k", "count")).toBe(3000);
  expect(parseAmount("12", "ps")).toBe(12);
  expect(parseAmount("much", "ps")).toBeNaN();
  expect(parseAmount("10 parsecs", "ps")).toBeNaN();
});

test("sums stay exact beyond what a double holds", () => {
  expect(sum([9_007_199_254_740_993n, 1, null])).toBe(9_007_199_254_740_994n);
  expect(sum([1, 2, undefined])).toBe(3);
  expect(sum([0.5, 1])).toBe(1.5);
});

test("numbers in names are ordered by value", () => {
  expect(["fusion.10", "fusion.2", "add"].sort((a, b) => (natural(a) < natural(b) ? -1 : 1))).toEqual(["add", "fusion.2", "fusion.10"]);
  expect(number(-2048, "bytes")).toBe("-2.00 KiB");
});
