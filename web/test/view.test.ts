import { expect, test } from "vitest";
import { clampView, deeper, endOf, fitView, panView, revealView, timeAt, wholeView, xOf, zoomView } from "../src/model/view";

const session = { t0: 0n, t1: 1_000_000_000n };

test("zooming keeps the time under the pointer where it is", () => {
  const v = { t0: 200_000_000n, span: 100_000_000 };
  const before = timeAt(v, 300, 1000);
  const after = timeAt(zoomView(v, 0.5, 0.3, session), 300, 1000);
  expect(Number(after - before)).toBeCloseTo(0, -1);
});

test("zooming out ends at the whole session, zooming in at some pixels a picosecond", () => {
  let v = wholeView(session);
  for (let i = 0; i < 200; i++) v = zoomView(v, 0.5, 0.5, session);
  expect(v.span).toBeGreaterThanOrEqual(100);
  for (let i = 0; i < 200; i++) v = zoomView(v, 2, 0.5, session);
  expect(v).toEqual(wholeView(session));
});

test("panning never loses the session", () => {
  let v = { t0: 0n, span: 1_000_000 };
  for (let i = 0; i < 5000; i++) v = panView(v, -0.9, session);
  expect(endOf(v)).toBeGreaterThan(session.t0);
  for (let i = 0; i < 5000; i++) v = panView(v, 0.9, session);
  expect(v.t0).toBeLessThan(session.t1);
});

test("fitting puts a range in the middle, also one of no length", () => {
  const v = fitView({ t0: 500_000_000n, t1: 500_100_000n }, session, 0.5);
  expect(xOf(v, 500_050_000n, 1000)).toBeCloseTo(500, 0);
  expect(fitView({ t0: 5n, t1: 5n }, session).span).toBeGreaterThan(0);
});

test("revealing moves only when it has to", () => {
  const v = { t0: 100_000_000n, span: 100_000_000 };
  expect(revealView(v, { t0: 120_000_000n, t1: 130_000_000n }, session, 1000)).toBe(v);
  const moved = revealView(v, { t0: 700_000_000n, t1: 710_000_000n }, session, 1000);
  expect(moved.span).toBe(v.span);
  expect(xOf(moved, 705_000_000n, 1000)).toBeCloseTo(500, 0);
  const closer = revealView(v, { t0: 120_000_000n, t1: 120_000_100n }, session, 1000);
  expect(closer.span).toBeLessThan(10_000);
});

test("a session of 2^62 ps keeps single picoseconds apart", () => {
  const far = { t0: 0n, t1: 2n ** 62n };
  const v = clampView({ t0: 2n ** 61n + 1n, span: 1000 }, far);
  expect(v.t0).toBe(2n ** 61n + 1n);
  expect(timeAt(v, 1, 1000)).toBe(2n ** 61n + 2n);
  expect(xOf(v, 2n ** 61n + 501n, 1000)).toBe(500);
});

test("ranges that were zoomed into are kept as long as the next is inside of them", () => {
  const v = (t0: bigint, span: number) => ({ t0, span });
  let trail = deeper([], v(0n, 1000));
  trail = deeper(trail, v(100n, 500));
  trail = deeper(trail, v(200n, 100));
  expect(trail.map((x) => x.span)).toEqual([1000, 500, 100]);
  expect(deeper(trail, v(100n, 500)).map((x) => x.span)).toEqual([1000, 500]);
  expect(deeper(trail, v(150n, 400)).map((x) => x.span)).toEqual([1000, 500, 400]);
  expect(deeper(trail, v(-5n, 50)).map((x) => x.span)).toEqual([50]);
  for (let i = 0; i < 20; i++) trail = deeper(trail, v(210n, 80 - i));
  expect(trail.length).toBe(6);
});
