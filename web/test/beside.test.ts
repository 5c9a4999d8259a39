import { expect, test, vi } from "vitest";
vi.mock("../src/views/trace/stage", () => ({ Stage: () => null }));
vi.mock("../src/widgets/popover", () => ({ Popover: () => null }));
vi.mock("../src/widgets/shell", () => ({ Loading: () => null }));
import { parseShift, shiftText } from "../src/views/trace/beside";

test("an offset is read as it is written", () => {
  for (const by of [0n, 1n, -1n, 999n, 1500n, -2_500_000n, 1_234_567_890_123n, 60_000_000_000_000n]) expect(parseShift(shiftText(by))).toBe(by);
  expect(parseShift("−1.5 ms")).toBe(-1_500_000_000n);
  expect(parseShift("")).toBe(0n);
  expect(parseShift("1000000 s")).toBe(10n ** 18n);
  for (const bad of ["1000001 s", `-${"9".repeat(20)} ps`, `${"9".repeat(400)} s`]) expect(parseShift(bad)).toBeNull();
  for (const bad of ["x", "5", "1.5.2ms", "5 hours"]) expect(parseShift(bad)).toBeNull();
});
