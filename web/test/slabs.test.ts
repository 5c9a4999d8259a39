import { expect, test } from "vitest";
import { decodeWindow } from "../src/api/window";
import { Slabs } from "../src/model/slabs";
import { row, windowOf } from "./encode";

const session = { t0: 0n, t1: 1_000_000n };
const window = (t0: number, t1: number, px: number, hidden = 1, extra: number[] = []) =>
  decodeWindow(Uint8Array.from([...windowOf(t0, t1, px, ["", "a"], [row(0, 0, [{ begin: 0, duration: 10, name: 1, id: 1 }], 1 + hidden, hidden)]), ...extra]));
const none = () => [];
const never = () => false;

test("a view that a slab covers finely enough needs no asking", () => {
  const slabs = new Slabs(1 << 20);
  slabs.add(window(0, 1_000_000, 1000), [0], none, never);
  expect(slabs.has(0, { t0: 0n, span: 1_000_000 }, 1000, session, true)).toBe(true);
  expect(slabs.has(0, { t0: 0n, span: 500_000 }, 500, session, true)).toBe(false);
  expect(slabs.has(1, { t0: 0n, span: 1_000_000 }, 1000, session, true)).toBe(false);
});

test("the air around the session needs no data", () => {
  const slabs = new Slabs(1 << 20);
  slabs.add(window(0, 1_000_000, 1000), [0], none, never);
  expect(slabs.has(0, { t0: -10_000n, span: 1_020_000 }, 1020, session, true)).toBe(true);
});

test("where nothing is hidden any zoom is served", () => {
  const slabs = new Slabs(1 << 20);
  slabs.add(window(0, 1_000_000, 1000, 0), [0, 5], none, never);
  expect(slabs.has(0, { t0: 5n, span: 300 }, 0.2, session, true)).toBe(true);
  expect(slabs.has(5, { t0: 5n, span: 300 }, 0.2, session, true)).toBe(true);
});

test("the finest that covers is drawn, else what shows most", () => {
  const slabs = new Slabs(1 << 20);
  slabs.add(window(0, 1_000_000, 1000), [0], none, never);
  slabs.add(window(400_000, 600_000, 2000), [0], none, never);
  expect(slabs.best(0, { t0: 450_000n, span: 100_000 }, 100)!.t0).toBe(400_000n);
  expect(slabs.best(0, { t0: 0n, span: 1_000_000 }, 1000)!.t0).toBe(0n);
  expect(slabs.best(0, { t0: 5_000_000n, span: 10 }, 1)).toBeNull();
});

test("what was answered while loading is replaced, and asked again on demand", () => {
  const slabs = new Slabs(1 << 20);
  slabs.add(window(0, 1_000_000, 1000, 1, [0x48, 1]), [0], none, never);
  const view = { t0: 0n, span: 1_000_000 };
  expect(slabs.has(0, view, 1000, session, true)).toBe(true);
  expect(slabs.has(0, view, 1000, session, false)).toBe(false);
  slabs.add(window(0, 1_000_000, 1000), [0], none, never);
  expect(slabs.all(0)).toHaveLength(1);
  expect(slabs.has(0, view, 1000, session, false)).toBe(true);
});

test("a line is covered where it has events, whatever else the view shows", () => {
  const slabs = new Slabs(1 << 20);
  slabs.add(window(0, 500_000, 1000), [0], none, never);
  const view = { t0: 0n, span: 1_000_000 };
  expect(slabs.has(0, view, 1000, session, true)).toBe(false);
  expect(slabs.has(0, view, 1000, { t0: 10n, t1: 400_000n }, true)).toBe(true);
  expect(slabs.has(7, { t0: 0n, span: 100 }, 1, { t0: 500n, t1: 900n }, true)).toBe(true);
});

test("the cache stays below its limit and forgets what was not drawn", () => {
  const slabs = new Slabs(5000);
  slabs.add(window(0, 1_000_000, 1000), [99], none, never);
  for (let i = 0; i < 200; i++) {
    slabs.add(window(i * 1000, i * 1000 + 999, 1000), [i % 50], none, never);
    slabs.best(99, { t0: 0n, span: 1_000_000 }, 1000);
    expect(slabs.bytes).toBeLessThanOrEqual(5000);
  }
  expect(slabs.all(99)).toHaveLength(1);
});
