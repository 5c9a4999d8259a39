import { expect, test } from "vitest";
import type { Plane } from "../src/api/types";
import { arrangementOf, layoutOf, parseLayouts } from "../src/model/layouts";

let next = 0;
const plane = (name: string, ...lines: string[]): Plane => ({
  plane: next++, name, state: "ready", events: 1, kind: "device", lines_total: lines.length,
  lines: lines.map((l) => ({ line: next++, id: 0, name: l, events: 1, lanes: 1, begin_ps: 0, end_ps: 1, derived: false, odd: 0, overflow: 0 })),
}) as unknown as Plane;

const profile = (): Plane[] => [plane("TPU:0", "Steps", "Ops"), plane("host", "python", "python", "x")];
const line = (p: Plane[], i: number, j: number): number => p[i]!.lines[j]!.line;

test("an arrangement made on one profile fits another whose rows are called the same", () => {
  const a = profile();
  const kept = layoutOf("mine", a, { pins: [line(a, 1, 1), line(a, 0, 0)], hide: [line(a, 0, 1)], flat: [line(a, 1, 2)], folded: [a[1]!.plane] });
  const b = [plane("TPU:9", "Ops"), ...profile()];
  const [, tpu, host] = b;
  expect(arrangementOf(b, parseLayouts(JSON.stringify([kept]))[0]!)).toEqual({
    pins: [host!.lines[1]!.line, tpu!.lines[0]!.line], hide: [tpu!.lines[1]!.line], flat: [host!.lines[2]!.line], folded: [host!.plane], absent: 0,
  });
});

test("what another profile does not have is counted, and nothing else is moved in its place", () => {
  const a = profile();
  const kept = layoutOf("mine", a, { pins: [line(a, 1, 1)], hide: [line(a, 0, 1)], flat: [], folded: [a[0]!.plane] });
  expect(arrangementOf([plane("host", "python")], kept)).toEqual({ pins: [], hide: [], flat: [], folded: [], absent: 3 });
});

test("what the browser kept may be broken, or another's", () => {
  for (const text of [null, "", "{", "7", '{"name":"x"}', '[null,7,{"pins":[]},{"name":""}]']) expect(parseLayouts(text)).toEqual([]);
  expect(parseLayouts('[{"name":"x","pins":[["a","b",0],["a"],null],"hide":5,"folded":["p",1]}]')).toEqual([{ name: "x", pins: [["a", "b", 0]], hide: [], flat: [], folded: ["p"] }]);
});
