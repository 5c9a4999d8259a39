import { expect, test } from "vitest";
import type { Report } from "../src/api/report";
import { asReport } from "../src/api/report";
import type { RunFacts, RunRow } from "../src/api/types";
import { coverageLine } from "../src/model/coverage";
import { columns, historiesOf, shownColumns, sparkPoints } from "../src/model/runcolumns";

const facts = (f: Partial<RunFacts>): RunFacts => ({
  device_type: "TPU v5e", cores: 4, step_time_mean: 1e9, mxu_utilization: 0.4, peak_memory: null, findings_p0: 0, findings_p1: 0, findings_p2: 0, dropped_events: 0,
  capture_kind: null, run_kind: null, workload: "jit_f", hosts: 1, expected_hosts: 1, devices: 4, expected_devices: 4, why: {}, notes: {}, ...f,
});
const row = (run: string, captured_ms: number | null, f: RunFacts | null = null, more: Partial<RunRow> = {}): RunRow => ({
  run, captured_ms, captured_from: "name", hosts: 1, bytes: 1, state: "ready", note: "", kind: null, facts: f, ...more,
});
const ids = (rows: RunRow[], changed: string[] = []): string[] => shownColumns(rows, new Set(changed), historiesOf(rows)).shown.map((c) => c.id);

test("columns that say nothing are not there, unless they are asked for", () => {
  const plain = [row("a", 1, facts({})), row("b", 2)];
  expect(ids(plain)).not.toContain("kind");
  expect(ids(plain)).not.toContain("dropped");
  expect(ids(plain)).not.toContain("history");
  expect(ids(plain)).not.toContain("program");
  expect(ids(plain)).toEqual(expect.arrayContaining(["run", "step", "memory", "findings", "state"]));
  expect(ids(plain, ["kind", "memory", "program"])).toEqual(expect.arrayContaining(["kind", "program"]));
  expect(ids(plain, ["memory"])).not.toContain("memory");
  expect(ids(plain, ["run"])).toContain("run");
  expect(ids([row("a", 1, facts({ dropped_events: 7 }))])).toContain("dropped");
  expect(ids([row("a", 1, facts({ dropped_events: null, why: { dropped_events: "not how many" } }))])).toContain("dropped");
  expect(ids([row("a", 1, null, { kind: "snapshot" })])).toContain("kind");
  expect(shownColumns(plain, new Set(), new Map()).blank.map((c) => c.id)).toEqual(["kind", "history", "dropped"]);
});

test("every column but the history is one that the server orders by", () => {
  const server = ["run", "captured", "hosts", "size", "state", "device", "kind", "step", "mfu", "memory", "findings", "dropped", "cores", "program", "work", "devices"];
  expect(columns.filter((c) => !c.unsorted).map((c) => c.id).filter((id) => !server.includes(id))).toEqual([]);
});

test("runs of the same work have a history, in order of time", () => {
  const rows = [row("c", 30, facts({ step_time_mean: 3e9 })), row("a", 10, facts({})), row("b", 20, facts({ step_time_mean: 2e9 })), row("x", 5, facts({ devices: 8 })), row("y", 6), row("z", null, facts({}))];
  const h = historiesOf(rows);
  expect([...h.keys()].sort()).toEqual(["a", "b", "c"]);
  expect(h.get("b")).toEqual({ steps: [1e9, 2e9, 3e9], runs: ["a", "b", "c"], at: 1 });
  expect(historiesOf(rows.slice(0, 2)).size).toBe(0);
});

test("a line of step times stays in its box", () => {
  expect(sparkPoints([1, 3, 2], 10, 4)).toEqual([[0, 4], [5, 0], [10, 2]]);
  expect(sparkPoints([5, 5], 10, 4)).toEqual([[0, 2], [10, 2]]);
  expect(sparkPoints([5], 10, 4)).toEqual([[5, 2]]);
});

const report = (metrics: Record<string, number | string | null>, more: Partial<Report> = {}): Report => asReport({
  hosts: ["h0"], missing_hosts: [], notes: [],
  metrics: Object.entries(metrics).map(([id, value]) => ({ id, label: id, unit: id === "device_type" ? "" : "count", value, reason: value === null ? `no ${id}` : null, note: `of ${id}`, definition: "", spread: null })),
  ...more,
});

test("the line of coverage counts hosts and devices against those that should be there, and what was dropped", () => {
  const c = report({ devices: 4, expected_devices: 16, expected_hosts: 4, dropped_events: 1234 });
  const line = coverageLine(report({ cores: 4, device_type: "TPU v6e" }), c, 1024, "0.1.0");
  expect(line.parts).toEqual(["1 of 4 hosts", "4 of 16 devices", "TPU v6e", "1.00 KiB", "1234 events dropped", "xprofd 0.1.0"]);
  expect(line.warnings).toEqual(["1 of 4 hosts", "4 of 16 devices", "1234 events dropped"]);
  expect(line.title).toContain("Hosts expected: of expected_hosts");
});

test("without coverage the line says what the page knows; what is not known is not 0", () => {
  expect(coverageLine(report({ cores: 4 }), null, 0, "").parts).toEqual(["1 host", "4 cores"]);
  const line = coverageLine(report({}), report({ devices: null, expected_devices: null, expected_hosts: null, dropped_events: null }), 0, "");
  expect(line.parts).toEqual(["1 host", "an unknown number of events dropped"]);
  expect(line.warnings).toEqual(["an unknown number of events dropped"]);
  expect(line.title).toContain("no expected_hosts");
  expect(coverageLine(report({}), report({ dropped_events: 0, expected_hosts: 1 }), 0, "").warnings).toEqual([]);
  const missing = report({}, { missing_hosts: [{ host: "h1", code: "corrupt_profile", detail: "" }] });
  expect(coverageLine(missing, null, 0, "").parts[0]).toBe("1 of 2 hosts");
});
