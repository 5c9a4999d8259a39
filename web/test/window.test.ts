import { expect, test } from "vitest";
import { decodeWindow, idAt, indexOfId } from "../src/api/window";
import { block, int, row, text, varint, windowOf } from "./encode";

test("a window reads back as it was written", () => {
  const rects = [
    { begin: -50, duration: 100, name: 1, id: 400 },
    { begin: 60, duration: 0, name: 2, id: 380 },
    { begin: 1000, duration: 500, name: 1, id: 900, count: 7, busy: 350 },
  ];
  const w = decodeWindow(windowOf(1_000_000, 2_000_000, 1500, ["", "fusion.1", "copy"], [row(3, 1, rects, 9, 6)]));
  expect([w.t0, w.t1, w.px, w.names]).toEqual([1_000_000n, 2_000_000n, 1500, ["", "fusion.1", "copy"]]);
  const lane = w.lanes[0]!;
  expect([lane.line, lane.lane, lane.events, lane.hidden]).toEqual([3, 1, 9, 6]);
  expect([...lane.begin]).toEqual([-50, 60, 1000]);
  expect([...lane.duration]).toEqual([100, 0, 500]);
  expect([...lane.name]).toEqual([1, 2, 1]);
  expect([0, 1, 2].map((i) => idAt(lane, i))).toEqual(["400", "380", "900"]);
  expect([...lane.count!]).toEqual([1, 1, 7]);
  expect([...lane.busyOf!]).toEqual([100, 0, 350]);
  expect(indexOfId(lane, "380")).toBe(1);
  expect(indexOfId(lane, "381")).toBe(-1);
});

test("negative times and times beyond 2^53 keep every picosecond", () => {
  const w = decodeWindow(windowOf(-7n, 2n ** 62n + 1n, 1, [""], []));
  expect([w.t0, w.t1]).toEqual([-7n, 2n ** 62n + 1n]);
});

test("fields of a later version are skipped", () => {
  const later = [...int(99, 5), ...text(98, "new"), ...varint((97 << 3) | 5), 1, 2, 3, 4];
  const bytes = Uint8Array.from([...later, ...windowOf(0, 10, 5, [""], [])]);
  expect(decodeWindow(bytes).t1).toBe(10n);
});

test("columns of different lengths are refused", () => {
  const bad = block(5, [...block(6, [1, 1]), ...block(7, [1]), ...block(8, [0, 0]), ...block(9, [2, 2])]);
  expect(() => decodeWindow(windowOf(0, 10, 5, [""], [bad]))).toThrow(/2 rectangles, 1 entries of duration/);
});

test("a name that is not in the table is refused", () => {
  const bytes = windowOf(0, 10, 5, [""], [row(0, 0, [{ begin: 0, duration: 1, name: 1, id: 1 }])]);
  expect(() => decodeWindow(bytes)).toThrow(/name 1 of 1/);
});

test("an answer cut anywhere throws or is a window: it never hangs", () => {
  const bytes = windowOf(0, 10, 5, ["", "a"], [row(0, 0, [{ begin: 0, duration: 1, name: 1, id: 1 }])]);
  for (let n = 0; n < bytes.length; n++) {
    try {
      decodeWindow(bytes.subarray(0, n));
    } catch (e) {
      expect((e as Error).message).toMatch(/^window: /);
    }
  }
});
