import { beforeEach, expect, test, vi } from "vitest";

beforeEach(() => vi.resetModules());

test("a workload is a run's name without what counts it", async () => {
  const { workload } = await import("../src/model/known");
  expect(workload("train-2026-11-03")).toBe("train");
  expect(workload("train_0042")).toBe("train");
  expect(workload("a/b/train_2026-11-03T10:20:30")).toBe("a/b/train");
  expect(workload("train_v5e")).toBe("train_v5e");
  expect(workload("2026_11_03")).toBe("2026_11_03");
});

test("what is known of a workload is known of its later runs, until it is forgotten", async () => {
  const { isKnown, knownFindings, markKnown } = await import("../src/model/known");
  markKnown("/p/a/", "train_1", "idle", true);
  expect(isKnown(knownFindings.value, "/p/a/", "train_2", "idle")).toBe(true);
  expect(isKnown(knownFindings.value, "/p/a/", "train_2", "copies")).toBe(false);
  expect(isKnown(knownFindings.value, "/p/a/", "serve_2", "idle")).toBe(false);
  expect(isKnown(knownFindings.value, "/p/b/", "train_2", "idle")).toBe(false);
  markKnown("/p/a/", "train_3", "idle", false);
  expect(isKnown(knownFindings.value, "/p/a/", "train_2", "idle")).toBe(false);
});
