import { expect, test } from "vitest";
import type { Lane, Window } from "../src/api/window";
import { flameOf } from "../src/model/flame";

const NAMES = ["main", "f", "g", ""];

function lane(line: number, at: number, rects: [name: number, begin: number, duration: number, count?: number, busy?: number][]): Lane {
  const many = rects.some((r) => r[3] !== undefined);
  return {
    line, lane: at, events: rects.length, hidden: 0, busy: 0,
    begin: Float64Array.from(rects, (r) => r[1]), duration: Float64Array.from(rects, (r) => r[2]), name: Uint32Array.from(rects, (r) => r[0]),
    id: Float64Array.from(rects, (_, i) => i), count: many ? Float64Array.from(rects, (r) => r[3] ?? 1) : null,
    busyOf: many ? Float64Array.from(rects, (r) => r[4] ?? r[2]) : null,
  };
}

const win = (...lanes: Lane[]): Window => ({
  t0: 1000n, t1: 2000n, px: 1, names: NAMES, lanes, events: 0, hidden: 0, mergePx: 1, loading: false, bytesDone: 0, bytesTotal: 0,
  planesDone: 0, planesTotal: 0, partial: false, damage: "", rowsCut: 0,
});
const lineName = (n: number): string => `line ${n}`;
const said = (w: Window, t0 = 1000n, t1 = 2000n) => flameOf(w, t0, t1, lineName).tree.nodes.map((n) => [n.parent, n.name, ...n.values]);

test("equal stacks are one, and self time is what no child has", () => {
  const w = win(lane(0, 0, [[0, 0, 100], [0, 200, 100]]), lane(0, 1, [[1, 10, 20], [1, 210, 30]]), lane(0, 2, [[2, 12, 5]]));
  expect(said(w)).toEqual([[-1, "line 0", 200, 0, 2], [0, "main", 200, 150, 2], [1, "f", 50, 45, 2], [2, "g", 5, 5, 1]]);
});

test("an event that ends after the one before it is not inside of it", () => {
  expect(said(win(lane(0, 0, [[0, 0, 100]]), lane(0, 1, [[1, 50, 100]])))).toEqual([[-1, "line 0", 200, 0, 2], [0, "main", 100, 100, 1], [0, "f", 100, 100, 1]]);
});

test("lines stand apart, and times outside of the area do not count", () => {
  const w = win(lane(0, 0, [[0, 0, 100]]), lane(5, 0, [[1, 0, 10], [1, 60, 20]]));
  expect(said(w, 1050n, 1070n)).toEqual([[-1, "line 0", 20, 0, 1], [0, "main", 20, 20, 1], [-1, "line 5", 10, 0, 1], [2, "f", 10, 10, 1]]);
});

test("merged rectangles count with the time behind them, by no name of theirs", () => {
  const f = flameOf(win(lane(0, 0, [[0, 0, 100, 7, 40]])), 1000n, 2000n, lineName);
  expect(f).toMatchObject({ merged: 40, total: 40, cut: false });
  expect(f.tree.nodes[1]).toEqual({ parent: 0, name: "(events too short to tell apart)", values: [40, 40, 7] });
});
