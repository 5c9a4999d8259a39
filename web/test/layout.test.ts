import { expect, test } from "vitest";
import type { Line, Plane } from "../src/api/types";
import { anyHatched, HATCH, hatchSpans, inkOf, paintSpans, thinned } from "../src/layout/bars";
import { firstAfter, hitLane, layoutLane, Spans } from "../src/layout/rects";
import { laneAt, laneTop, layoutRows, linesBetween, rowIndexAt, visibleRows } from "../src/layout/rows";
import { layoutRuler, niceStep } from "../src/layout/ruler";
import { fitText } from "../src/layout/text";
import { busyColumns } from "../src/layout/minimap";
import { decodeWindow } from "../src/api/window";
import { row, windowOf } from "./encode";

const lane = { begin: [0, 100, 250, 1000], duration: [50, 100, 0, 4000] };

function spansOf(l: { begin: number[]; duration: number[] }, offset: number, k: number, width: number) {
  const out = new Spans();
  layoutLane(l, offset, k, width, out);
  return Array.from({ length: out.n }, (_, i) => [out.x0[i], out.x1[i], out.index[i]]);
}

test("rectangles become pixels, cut to the width", () => {
  expect(spansOf(lane, 0, 0.1, 200)).toEqual([[0, 5, 0], [10, 20, 1], [25, 26, 2], [100, 200, 3]]);
});

test("a rectangle that began before the view is drawn from its left edge", () => {
  expect(spansOf(lane, -2000, 0.1, 100)).toEqual([[0, 100, 3]]);
});

test("nothing overlaps, and every taken pixel is drawn once", () => {
  const n = 10_000;
  const dense = { begin: Array.from({ length: n }, (_, i) => i * 3), duration: Array.from({ length: n }, (_, i) => i % 3) };
  const spans = spansOf(dense, 0, 0.01, 300);
  expect(spans.length).toBeLessThanOrEqual(300);
  for (let i = 1; i < spans.length; i++) expect(spans[i]![0]!).toBeGreaterThanOrEqual(spans[i - 1]![1]!);
});

test("an event of no length still has a pixel", () => {
  expect(spansOf({ begin: [250], duration: [0] }, 0, 0.1, 100)).toEqual([[25, 26, 0]]);
});

test("what is outside the view is not looked at", () => {
  expect(firstAfter(lane, 51)).toBe(1);
  expect(firstAfter(lane, 6000)).toBe(4);
  expect(spansOf(lane, 0, 0.1, 5)).toEqual([[0, 5, 0]]);
  expect(spansOf({ begin: [], duration: [] }, 0, 1, 100)).toEqual([]);
});

test("a hit is the rectangle under the pointer, else the nearest within reach", () => {
  expect(hitLane(lane, 20, 5)).toBe(0);
  expect(hitLane(lane, 53, 5)).toBe(0);
  expect(hitLane(lane, 96, 5)).toBe(1);
  expect(hitLane(lane, 75, 5)).toBe(-1);
  expect(hitLane(lane, 252, 5)).toBe(2);
  expect(hitLane(lane, 75, Infinity)).toBeGreaterThanOrEqual(0);
});

const line = (n: number, lanes: number, events = 5): Line => ({
  line: n, id: n, name: `line ${n}`, events, lanes, begin_ps: 0, end_ps: 1, derived: false, odd: 0, overflow: 0,
});
const plane = (n: number, lines: Line[], events = 10): Plane => ({ plane: n, name: `p${n}`, state: "ready", events, kind: "device", lines });
const planes = [plane(0, [line(0, 1), line(1, 3)]), plane(1, [line(2, 1)]), plane(2, [line(3, 1, 0)], 0)];

test("rows follow each other without gaps or overlaps", () => {
  const { rows, height } = layoutRows(planes, new Set(), new Set());
  let y = 0;
  for (const r of rows) {
    expect(r.y).toBe(y);
    y += r.h;
  }
  expect(height).toBe(y);
});

test("a plane without events starts folded and unfolds; others the other way round", () => {
  const lines = (toggled: number[]) => layoutRows(planes, new Set(toggled), new Set()).rows.flatMap((r) => (r.line ? [r.line.line] : []));
  expect(lines([])).toEqual([0, 1, 2]);
  expect(lines([2])).toEqual([0, 1, 2, 3]);
  expect(lines([0])).toEqual([2]);
});

test("a plane that is still loading is not folded for being empty", () => {
  const loading: Plane = { ...plane(0, [line(0, 1)], 0), state: "waiting" };
  expect(layoutRows([loading], new Set(), new Set()).rows).toHaveLength(2);
});

test("a flattened line is lower and keeps its lanes apart", () => {
  const tall = layoutRows(planes, new Set(), new Set()).byLine.get(1)!;
  const flat = layoutRows(planes, new Set(), new Set([1])).byLine.get(1)!;
  expect(flat.h).toBeLessThan(tall.h);
  for (const r of [tall, flat]) for (const l of [0, 1, 2]) expect(laneAt(r, laneTop(r, l) + 1)).toBe(l);
});

test("only rows in sight are given out, however many there are", () => {
  const many = layoutRows([plane(0, Array.from({ length: 100_000 }, (_, i) => line(i, 1)))], new Set(), new Set());
  const seen = visibleRows(many.rows, 1_000_000, 600);
  expect(seen.length).toBeLessThan(40);
  expect(seen[0]!.y).toBeLessThanOrEqual(1_000_000);
  expect(seen[0]!.y + seen[0]!.h).toBeGreaterThan(1_000_000);
  expect(rowIndexAt(many.rows, -5)).toBe(0);
  expect(visibleRows([], 0, 100)).toEqual([]);
});

test("an area takes the lines it touches", () => {
  const { rows, byLine } = layoutRows(planes, new Set(), new Set());
  expect(linesBetween(rows, byLine.get(1)!.y + 2, byLine.get(2)!.y + 2)).toEqual([1, 2]);
  expect(linesBetween(rows, byLine.get(2)!.y + 2, byLine.get(0)!.y + 2)).toEqual([0, 1, 2]);
});

test("steps of the ruler are 1, 2 or 5 times a power of ten", () => {
  expect([0.1, 1, 1.5, 3, 7, 11, 2e9].map(niceStep)).toEqual([1, 1, 2, 5, 10, 20, 2e9]);
});

test("the ruler's labels name the time they stand at", () => {
  const { ticks, base } = layoutRuler({ t0: 0n, span: 10_000_000_000 }, 1000);
  const labelled = ticks.filter((t) => t.label !== null);
  expect(base).toBe("");
  expect(labelled[0]).toEqual({ x: 0, label: "0 ms" });
  expect(labelled[1]!.label).toBe("2 ms");
  expect(labelled[1]!.x).toBeCloseTo(200);
});

test("deep in a long session labels count from a round time", () => {
  const t0 = 5_353_244_970_609n;
  const { ticks, base } = layoutRuler({ t0, span: 14_000_000 }, 1000);
  expect(base.replace(/\s/g, " ")).toBe("5.353 s");
  for (const t of ticks.filter((k) => k.label !== null && k.x >= 0)) {
    const us = Number(/^\+(.*) µs$/.exec(t.label!)![1]!.replace(/\s/g, ""));
    expect(us * 1e6 + 5_353_000_000_000).toBeCloseTo(Number(t0) + (t.x / 1000) * 14_000_000, -1);
  }
});

test("any view has a bounded number of marks", () => {
  for (const span of [200, 1e3, 1e6, 1e12, 1e15, 4e18])
    for (const t0 of [0n, -(10n ** 12n), 2n ** 61n]) expect(layoutRuler({ t0, span }, 1500).ticks.length).toBeLessThan(200);
});

test("text is shortened to the room there is", () => {
  expect(fitText("fusion", 36, 40)).toBe("fusion");
  expect(fitText("fusion.123456", 78, 48)).toBe("fusion…");
  expect(fitText("fusion", 36, 10)).toBe("");
});

test("the map adds up how busy each column is", () => {
  const w = decodeWindow(windowOf(0, 100, 10, ["", "a"], [
    row(0, 0, [{ begin: 0, duration: 50, name: 1, id: 1 }]),
    row(1, 0, [{ begin: 0, duration: 100, name: 1, id: 2, count: 4, busy: 50 }]),
    row(1, 1, [{ begin: 0, duration: 100, name: 1, id: 3 }]),
  ]));
  const columns = busyColumns(w, 10);
  expect(columns[0]).toBeCloseTo(0.75);
  expect(columns[9]).toBeCloseTo(0.25);
});

test("pinned lines are above the others, in their order; hidden ones are left out", () => {
  const one = [plane(0, [line(0, 1), line(1, 1), line(2, 2)])];
  const { rows, pinned, pinnedHeight, byLine, hidden } = layoutRows(one, new Set(), new Set(), [2, 0, 77], new Set([1]));
  expect(pinned.map((r) => r.line!.line)).toEqual([2, 0]);
  expect(pinned[1]!.y).toBe(pinned[0]!.h);
  expect(pinnedHeight).toBe(pinned[0]!.h + pinned[1]!.h);
  expect(rows.map((r) => r.line?.line)).toEqual([undefined]);
  expect(rows[0]!.y).toBe(pinnedHeight);
  expect(hidden).toBe(1);
  expect([...byLine.keys()].sort()).toEqual([0, 2]);
});

/** A lane of 24 pixels in hexadecimal digits of what was painted. */
function painted(list: [from: number, to: number][], gap = 1): string {
  const spans = new Spans();
  list.forEach(([a, b], i) => spans.push(a, b, i));
  const px = new Uint32Array(34); // more than the lane, which is to stay as it is
  paintSpans(spans, (i) => i + 1, gap, px, 5);
  expect([...px.slice(0, 5), ...px.slice(29)].every((p) => p === 0)).toBe(true);
  return Array.from(px.slice(5, 29), (p) => (p ? p.toString(16) : ".")).join("");
}

test("every rectangle paints its pixels, wide ones leave a gap behind them", () => {
  expect(painted([[0, 1], [1, 4], [4, 8], [8, 20]])).toBe("1222333.44444444444.....");
  expect(painted([[0, 6], [6, 13]], 2)).toBe("11111122222.............");
  expect(painted([])).toBe(".".repeat(24));
});

test("a lane wider than a line of pixels that is filled at once looks the same", () => {
  const spans = new Spans();
  spans.push(3, 90, 0);
  const px = new Uint32Array(100);
  paintSpans(spans, () => 7, 1, px, 0);
  expect(Array.from(px, (p, x) => p === (x >= 3 && x < 89 ? 7 : 0)).every(Boolean)).toBe(true);
});

test("a colour is a pixel as ImageData has it, and may be thinner", () => {
  const bytes = (ink: number) => [...new Uint8Array(Uint32Array.of(ink).buffer)];
  expect(bytes(inkOf("#102030"))).toEqual([0x10, 0x20, 0x30, 255]);
  expect(bytes(inkOf("#ffffff"))).toEqual([255, 255, 255, 255]);
  expect(bytes(thinned(inkOf("#102030"), 0.4))).toEqual([0x10, 0x20, 0x30, 102]);
});

test("hatching goes over wide merged rectangles only, in lines that climb to the right", () => {
  const spans = new Spans();
  spans.push(0, 13, 0);
  spans.push(13, 15, 1); // too narrow
  spans.push(15, 24, 2); // not merged
  const merged = (i: number) => i < 2;
  const width = 24;
  const px = new Uint32Array(width * HATCH);
  paintSpans(spans, () => inkOf("#000000"), 1, px, 0);
  for (let r = 1; r < HATCH; r++) px.copyWithin(r * width, 0, width);
  expect(anyHatched(spans, merged, 1)).toBe(true);
  expect(anyHatched(spans, (i) => i === 1, 1)).toBe(false);
  hatchSpans(spans, merged, 1, { grey: 255, alpha: 0.5 }, px, 0, width, 2);
  const white = (r: number) => Array.from({ length: width }, (_, x) => x).filter((x) => (px[r * width + x]! & 255) === 128);
  expect(white(0)).toEqual([4, 10]); // the line meets y 2
  expect(white(1)).toEqual([3, 9]);
  expect(white(5)).toEqual([5, 11]);
  expect(px[12]).toBe(0); // the gap stays
});

test("hatching lets through what a thin rectangle lets through", () => {
  const spans = new Spans();
  spans.push(0, 8, 0);
  const px = new Uint32Array(8 * HATCH).fill(thinned(inkOf("#ff0000"), 0.4));
  hatchSpans(spans, () => true, 1, { grey: 255, alpha: 0.5 }, px, 0, 8, 0);
  const [r, g, , a] = new Uint8Array(px.buffer);
  expect([r, a]).toEqual([255, 179]); // 0.5 and 0.4 of what is left
  expect(g).toBe(182); // white has 5 parts of 7
});
