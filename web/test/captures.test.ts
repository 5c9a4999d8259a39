import { describe, expect, test } from "vitest";
import type { Capture, Target, TargetResult } from "../src/api/captures";
import { announce, estimate, failedTargets, faultsOf, formOf, isSound, matching, milliseconds, optionValue, outcomeWords, presetOf, PRESETS, preselected, progressOf, progressWords, retryOf, spell, wantedOf, withPreset, type Form } from "../src/model/captures";

const target = (name: string, rate: number | null = null): Target => ({ name, address: `10.0.0.1:${name.length}`, bytes_per_s: rate, busy: false });
const result = (name: string, outcome: TargetResult["outcome"], bytes: number | null = null): TargetResult => ({
  target: name, phase: outcome ? "done" : "capturing", outcome, grpc_status: 0, message: "", hint: "", bytes, attempts: 1,
});
const capture = (more: Partial<Capture>): Capture => ({
  id: "a", kind: "on_demand", run: "2026_11_30_16_10_00", phase: "capturing", outcome: null, began_ms: 1000, ends_ms: 5000, ended_ms: null, duration_ms: 3000, delay_ms: 1000,
  by: null, note: "", levels: { host: 2, device: 1, python: 0 }, options: { a: 1 }, targets: [], ...more,
});
const form: Form = formOf(PRESETS[0]!);

test("targets that are called as the run's hosts are chosen, else all", () => {
  const all = [target("w-0"), target("w-1"), target("w-2")];
  expect([...preselected(all, ["w-1", "gone"])]).toEqual(["w-1"]);
  expect(preselected(all, ["gone"]).size).toBe(3);
  expect(preselected(all, []).size).toBe(3);
  expect(matching(all, " W-  2 ").map((t) => t.name)).toEqual(["w-2"]);
});

test("a preset is the form as it stands, and another value is none", () => {
  for (const p of PRESETS) expect(presetOf(formOf(p))).toBe(p.id);
  expect(presetOf({ ...form, duration: "2.5" })).toBe("");
  expect(presetOf({ ...form, options: [["", ""]] })).toBe("quick");
  expect(presetOf({ ...form, options: [["a", "b"]] })).toBe("");
});

test("another preset takes the options of the one before with it, and leaves what was typed", () => {
  const kernel = withPreset({ ...form, delay: "3", run: "mine", options: [["gpu_enable_nvtx_tracking", "true"], ["tpu_trace_mode", "1"]] }, PRESETS[3]!);
  expect(kernel.options).toEqual([["tpu_trace_mode", "TRACE_COMPUTE_AND_SYNC"], ["gpu_enable_nvtx_tracking", "true"]]);
  expect([kernel.delay, kernel.run, kernel.duration]).toEqual(["3", "mine", "0.5"]);
  expect(withPreset(kernel, PRESETS[0]!).options).toEqual([["gpu_enable_nvtx_tracking", "true"]]);
  for (const p of PRESETS) expect(presetOf(withPreset(formOf(PRESETS[3]!), p))).toBe(p.id);
});

test("times are typed in seconds and said in words", () => {
  expect(["2", " 0,5 ", "1.", "", "-1", "1e3", "x"].map(milliseconds)).toEqual([2000, 500, 1000, NaN, NaN, NaN, NaN]);
  expect([2000, 500, 90_000, 600_000].map(spell)).toEqual(["2 s", "0.5 s", "1 min 30 s", "10 min"]);
});

test("what is wrong is said where it is", () => {
  const bad = faultsOf({ ...form, duration: "0.05", delay: "x", run: "a b", levels: { host: 0, device: 0, python: 0 }, options: [["a b", "1"], ["k", ""], ["", "v"], ["", ""], ["j", "1"], ["j", "2"]] }, []);
  expect(bad.targets).toMatch(/at least one/);
  expect(bad.duration).toMatch(/From 0.1 s to 10 min/);
  expect(bad.delay).toMatch(/number of seconds/);
  expect(bad.run).toMatch(/Letters/);
  expect(bad.levels).toMatch(/nothing is recorded/);
  expect(bad.options.map(Boolean)).toEqual([true, true, true, false, false, true]);
  expect(isSound(bad)).toBe(false);
  expect(isSound(faultsOf(form, ["w-0"]))).toBe(true);
});

test("options are sent as what they look like, and empty rows not at all", () => {
  expect(["true", " 12 ", "-3", "1.5", "TRACE", "12345678901234567890"].map(optionValue)).toEqual([true, 12, -3, "1.5", "TRACE", "12345678901234567890"]);
  expect(wantedOf({ ...form, delay: "1", options: [["a", "true"], ["", ""]] }, ["w-0"])).toEqual({ targets: ["w-0"], duration_ms: 2000, delay_ms: 1000, levels: form.levels, options: { a: true } });
  expect(wantedOf({ ...form, run: "mine" }, ["w-0"]).run).toBe("mine");
});

describe("the estimate", () => {
  test("says the largest, and that it is not known", () => {
    expect(estimate([target("w-0")], 2000).text).toMatch(/not known before the target has been captured once/);
    const some = estimate([target("w-0", 50 * 2 ** 20), target("w-1", 100 * 2 ** 20), target("w-2")], 2000);
    expect(some).toEqual({ text: "About 300 MiB, the largest 200 MiB of w-1, as the last captures were; 2.00 GiB a profile is the limit. Of 1 target it is not known.", tone: "" });
  });
  test("warns near the limit, and says what would fit", () => {
    expect(estimate([target("w-0", 2 ** 30)], 1600, "write")).toMatchObject({ tone: "warning" });
    const over = estimate([target("w-0", 2 ** 30)], 2000, "write");
    expect(over.tone).toBe("bad");
    expect(over.text).toMatch(/would be lost.* 1.5 s would fit/);
    expect(estimate([target("w-0", 2 ** 40)], 2000, "write").text).toMatch(/Lower the levels/);
  });
  test("says that the server shortens what comes here", () => {
    expect(estimate([target("w-0", 2 ** 30)], 2000)).toMatchObject({ tone: "warning", text: expect.stringMatching(/shortened to fit\. 1\.5 s would fit/) });
    expect(estimate([target("w-0")], 6000).text).toMatch(/a short one is taken first/);
  });
});

test("the button says what will happen", () => {
  expect(announce(["w-0"], form)).toBe("Capture w-0 for 2 s");
  expect(announce(["w-0", "w-1"], { ...form, delay: "90" })).toBe("Capture 2 targets for 2 s, in 1 min 30 s");
  expect(announce(["w-0"], { ...form, duration: "x" })).toBe("Capture w-0");
});

test("progress goes with the server's clock, and says nothing where it cannot", () => {
  const c = capture({ targets: [result("w-0", null), result("w-1", null)] });
  expect(progressOf(c, 3000)).toBe(0.5);
  expect(progressOf(c, 0)).toBe(0);
  expect(progressOf(c, 6000)).toBe(null);
  expect(progressOf(capture({ phase: "collecting" }), 3000)).toBe(null);
  expect(progressOf(capture({ ends_ms: 1000 }), 1000)).toBe(null);
  expect(progressWords(capture({ phase: "waiting" }), 1200)).toBe("begins in 1 s");
  expect(progressWords(c, 3100)).toBe("recording, ends in 2 s, 0 of 2 targets done");
  expect(progressWords(c, 9000)).toMatch(/^recorded; collecting/);
});

test("what came of it is a sentence, and success only what is there", () => {
  const done = (outcome: Capture["outcome"], ...targets: TargetResult[]): Capture => capture({ phase: "done", outcome, targets });
  expect(outcomeWords(done("SUCCEEDED", result("w-0", "SUCCEEDED", 2 ** 20)))).toBe("captured, 1.00 MiB");
  const part = done("PARTIAL", result("w-0", "SUCCEEDED", 2 ** 20), result("w-1", "TIMEOUT"), result("w-2", "EMPTY", 0));
  expect(outcomeWords(part)).toBe("1 of 3 targets captured, 1.00 MiB");
  expect(outcomeWords(done("CANCELLED", result("w-0", "CANCELLED")))).toBe("cancelled, nothing kept");
  expect(outcomeWords(done("FAILED", result("w-0", "FAILED")))).toBe("no profile");
  expect(failedTargets(part)).toEqual(["w-1", "w-2"]);
});

test("a retry is of those that failed and still are targets, as a run of its own", () => {
  const all = [target("w-0"), target("w-1")];
  const part = capture({ run: "mine", phase: "done", outcome: "PARTIAL", targets: [result("w-0", "SUCCEEDED", 1), result("w-1", "TIMEOUT"), result("gone", "UNREACHABLE")] });
  expect(retryOf(part, all)).toEqual({ targets: ["w-1"], duration_ms: 3000, delay_ms: 0, levels: part.levels, options: { a: 1 } });
  const none = capture({ run: "mine", phase: "done", outcome: "FAILED", targets: [result("w-1", "TIMEOUT")] });
  expect(retryOf(none, all)?.run).toBe("mine");
  expect(retryOf({ ...none, run: "2026_11_30_16_10_00" }, all)).not.toHaveProperty("run");
  expect(retryOf({ ...part, phase: "capturing" }, all)).toBe(null);
  expect(retryOf({ ...none, kind: "snapshot" }, all)).toBe(null);
  expect(retryOf(none, [])).toBe(null);
});
