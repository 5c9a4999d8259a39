import { expect, test } from "vitest";
import { ago, bytes, clock, count, date, digits, duration, exactNs, percent, shortCount, timestamp } from "../src/model/format";

const plain = (s: string) => s.replace(/\u202f/g, " ");

test("durations stand in their best unit", () => {
  expect([0, 1, 999, 1000, 12_345, 1_500_000, 2e9, 3.25e12, -1500].map((x) => plain(duration(x)))).toEqual([
    "0 ps", "1 ps", "999 ps", "1.000 ns", "12.35 ns", "1.500 µs", "2.000 ms", "3.250 s", "-1.500 ns",
  ]);
  expect(duration(999_999.9)).toBe("1.000 µs");
  expect(duration(2n ** 62n)).toMatch(/ s$/);
});

test("exact values keep every digit", () => {
  expect(plain(exactNs(12_345_678))).toBe("12 345.678 ns");
  expect(plain(exactNs(9_007_199_254_740_993n))).toBe("9 007 199 254 740.993 ns");
  expect(exactNs(-1)).toBe("-0.001 ns");
  expect(exactNs(5000)).toBe("5 ns");
});

test("timestamps lose no picosecond and no more zeros than needed stand", () => {
  expect(plain(timestamp(5_353_251_593_250n))).toBe("5.353 251 593 250 s");
  expect(plain(timestamp(12_150_000_000n))).toBe("0.012 150 s");
  expect(plain(timestamp(0n))).toBe("0.000 s");
  expect(plain(timestamp(-765_258_070n))).toBe("-0.000 765 258 070 s");
});

test("counts have their digits in groups", () => {
  expect([0, 999, 9999, 12345, 1234567, -12345].map((n) => plain(count(n)))).toEqual(["0", "999", "9999", "12 345", "1 234 567", "-12 345"]);
  expect(shortCount(19_270)).toBe("19.3 k");
  expect(shortCount(48_000_000)).toBe("48.0 M");
});

test("sizes are binary", () => {
  expect([0, 1023, 1024, 862_707, 2 * 2 ** 30].map(bytes)).toEqual(["0 B", "1023 B", "1.00 KiB", "842 KiB", "2.00 GiB"]);
});

test("shares never say zero for something", () => {
  expect([percent(1, 4), percent(1, 1e6), percent(0, 5), percent(1, 0)]).toEqual(["25.0 %", "<0.1 %", "0.0 %", ""]);
});

test("significant digits without exponents", () => {
  expect([digits(1234.5, 3), digits(0.001234, 3), digits(0, 3)]).toEqual(["1235", "0.00123", "0"]);
});

test("a moment of the clock has its zone and every digit", () => {
  const { text, iso } = clock(1_769_853_600_123_456_789n);
  expect(iso).toBe("2026-01-31T10:00:00.123456789Z");
  expect(text).toMatch(/^\d\d:\d\d:\d\d\.123\u202f456 (UTC|GMT|[A-Z]{2,})/);
});

test("dates carry their zone, unknown ones say so", () => {
  expect(date(1_769_853_600_000).iso).toBe("2026-01-31T10:00:00.000Z");
  expect(date(1_769_853_600_000).text).toMatch(/2026.*(UTC|GMT|[A-Z]{2,})/);
  expect(date(0).text).toBe("unknown");
  expect(date(Number.NaN).text).toBe("unknown");
  expect(ago(1, 3 * 86_400_000 + 1)).toBe("3 days ago");
  expect(ago(null, 3 * 86_400_000)).toBe("");
});
