import { expect, test } from "vitest";
import { bySize, together, zoomOf, type Buffer } from "../src/model/lifetimes";

test("steps that a program does not have are not zoomed to", () => {
  expect(zoomOf("2-9", 20)).toEqual([2, 9]);
  expect(zoomOf("2-90", 20)).toEqual([2, 20]);
  for (const other of ["30-90", "20-90", "9-2", "9", "", "-1-5"]) expect(zoomOf(other, 20)).toBeNull();
});

const of = (key: string, begin: number, end: number, size: number): Buffer => ({ key, name: key, begin, end, size, kind: "Temporary", place: null, facts: [] });

test("what is not alive at one time takes the same height, what is does not", () => {
  const all = [of("argument", 0, 9, 5), of("early", 0, 4, 20), of("late", 4, 8, 10), of("both", 2, 6, 8)];
  const told = bySize(all, 9).map(({ b, base }) => `${b.key} ${base}`);
  expect(told).toEqual(["argument 0", "early 5", "late 5", "both 25"]);
  for (let n = 0; n < 20; n++) {
    const many = Array.from({ length: 60 }, (_, i) => of(String(i), (i * 7 + n) % 40, ((i * 7 + n) % 40) + 1 + ((i * 13) % 11), 1 + ((i * 31 + n) % 17)));
    const placed = bySize(many, 99);
    expect(placed.length).toBe(60);
    for (const a of placed) for (const b of placed) if (a !== b && a.b.begin < b.b.end && b.b.begin < a.b.end) expect(a.base + a.b.size <= b.base || b.base + b.b.size <= a.base).toBe(true);
  }
});

test("small ones are counted together, with what the server told so", () => {
  const rest = together([of("a", 0, 5, 3), of("b", 5, 10, 4)], [[0, 100, 2], [5, 0, 0]], 0, 10, 10);
  expect([...rest.bytes]).toEqual([103, 103, 103, 103, 103, 4, 4, 4, 4, 4]);
  expect([...rest.count]).toEqual([3, 3, 3, 3, 3, 1, 1, 1, 1, 1]);
  expect([...together([of("a", 3, 3, 7)], [], 0, 10, 10).bytes]).toEqual([0, 0, 0, 7, 0, 0, 0, 0, 0, 0]); // for a moment
  expect([...together([of("a", 0, 99, 7)], [], 20, 30, 4).bytes]).toEqual([7, 7, 7, 7]);
});
