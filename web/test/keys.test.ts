import { expect, test, vi } from "vitest";
vi.mock("../src/model/theme", () => ({ cycleTheme: () => undefined }));
import { help, moveOf } from "../src/views/trace/keys";

test("W, S, A, D and arrows move each their way, with Shift four times as far", () => {
  const ways = ["w", "s", "a", "d", "arrowleft", "arrowright", "arrowup", "arrowdown"].map((k) => moveOf(k, 0.25, false)!);
  expect(ways.map((m) => Math.sign(m.pan))).toEqual([0, 0, -1, 1, -1, 1, 0, 0]);
  expect(ways.map((m) => Math.sign(m.scroll))).toEqual([0, 0, 0, 0, 0, 0, -1, 1]);
  expect([ways[0]!.zoom < 1, ways[1]!.zoom > 1, ways[2]!.zoom]).toEqual([true, true, 0]);
  expect(moveOf("d", 0.1, true)!.pan).toBeCloseTo(4 * moveOf("d", 0.1, false)!.pan);
  expect(moveOf("s", 0.1, true)!.zoom).toBeCloseTo(moveOf("s", 0.1, false)!.zoom ** 4);
  expect(moveOf("arrowdown", 0.1, true)!.scroll).toBeCloseTo(4 * moveOf("arrowdown", 0.1, false)!.scroll);
  expect(moveOf("x", 1, false)).toBeNull();
});

test("the help names every key that there is", () => {
  const named = new Set(help.flat().flatMap((h) => h.keys.split(/\s+/)));
  for (const k of ["W", "S", "A", "D", "Shift", "F", "0", "Home", ".", ",", "[", "]", "/", "M", "R", "P", "H", "Q", "1", "2", "3", "4", "Esc", "?", "K", "G", "E", "N", "I", "V"]) expect(named.has(k), k).toBe(true);
});
