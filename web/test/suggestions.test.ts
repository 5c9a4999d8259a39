import { expect, test } from "vitest";
import { asReport, type Cell, type Report, type Table } from "../src/api/report";
import type { RunRow } from "../src/api/types";
import { candidates, conditionsOf, differences, findingsIn, impactWords, isSame, sentencesOf, since, sinceWords, statusOf, suggestionsMarkdown, workloadOf } from "../src/model/suggestions";

const table = (id: string, columns: string[], rows: Cell[][]): Table => ({
  id, title: id, note: null, rows, total_rows: rows.length, rest: null, sort: null,
  columns: columns.map((c) => ({ id: c, label: c, unit: "", type: c === "op" ? "op" : typeof rows[0]?.[columns.indexOf(c)] === "number" ? "number" : "text" })),
});
const metric = (id: string, value: Cell, more: object = {}) => ({ id, label: id, unit: id === "step_time_mean" ? "ps" : "", value: value as number, reason: value === null ? "not in it" : null, note: null, definition: "", spread: null, ...more });

const FINDINGS = ["rule", "priority", "share", "finding", "evidence", "fix", "tool", "op", "program_id", "first_host", "first_plane", "first_begin_ps", "first_duration_ps", "impact"];
const finding = (rule: string, priority: string, share: number, impact: number | null = null): Cell[] => [rule, priority, share, `about ${rule}`, null, "do less", "hlo_stats", null, null, "w-0", "/device:TPU:0", 5, 7, impact];
const report = (findings: Cell[][], more: { programs?: string[]; step?: number; hosts?: number; tables?: Table[] } = {}): Report => asReport({
  metrics: [metric("status", findings.length ? "NEEDS_ATTENTION" : null), metric("step_time_mean", more.step ?? 100), metric("device_type", "TPU"), metric("hosts", more.hosts ?? 1)],
  tables: [table("findings", FINDINGS, findings), table("programs", ["program"], (more.programs ?? ["jit_f"]).map((p) => [p])), ...(more.tables ?? [])],
});

test("a status is told with its reason, and none is no status", () => {
  expect(statusOf(report([finding("idle", "P0", 0.5)]))).toEqual({ word: "NEEDS_ATTENTION", why: "" });
  expect(statusOf(report([]))).toEqual({ word: "", why: "not in it" });
  expect(statusOf(asReport({}))).toBe(null);
});

test("conditions are met, not met, or not known", () => {
  const gate = table("gate", ["condition", "id", "value", "limit", "at_least", "met", "reason"], [["use", "work", 0.7, 0.5, true, true, null], ["waits", "waits", null, 0.1, false, null, "no ops"], ["weighty", "findings", 2, 0, false, false, null]]);
  expect(conditionsOf(report([], { tables: [gate] })).map((c) => [c.value, c.limit, c.met])).toEqual([["70.0 %", "at least 50.0 %", true], ["n/a", "at most 10.0 %", null], ["2", "at most 0", false]]);
  expect(sentencesOf(report([], { tables: [table("summary", ["sentence"], [["a."], ["b."]])] }))).toEqual(["a.", "b."]);
});

test("findings stand by priority, then by share, each with its own evidence", () => {
  const evidence = table("evidence", ["rule", "evidence", "share", "tool", "op", "program_id", "first_host", "first_plane", "first_begin_ps", "first_duration_ps"],
    [["idle", "idle in all", 0.2, "trace", null, null, null, null, null, null], ["copies", "copy.1", 0.1, "hlo_stats", "copy.1", "7", "w-0", "/device:TPU:0", 3, 4]]);
  const list = findingsIn(report([finding("memory_near_limit", "P2", 0.8), finding("idle", "P1", 0.2, 20), finding("copies", "P0", 0.4)], { tables: [evidence] }));
  expect(list.map((f) => f.rule)).toEqual(["copies", "idle", "memory_near_limit"]);
  expect(list[0]!.evidence).toEqual([{ words: "copy.1", share: 0.1, tool: "hlo_stats", op: "copy.1", program: "7", time: { begin: 3, duration: 4n, host: "w-0" } }]);
  expect(list[1]!.evidence[0]!.time).toBe(null);
  expect(list.map(impactWords)).toEqual(["At most 40.0 % of the time; in time it is not known, as there are no steps.", "At most 20 ps of each step.", "No time by itself: it bounds what fits."]);
  expect(findingsIn(asReport({}))).toEqual([]);
});

test("the same work is the same programs on as many hosts of one device", () => {
  const [a, b] = [workloadOf(report([], { programs: ["jit_f", "jit_g"] })), workloadOf(report([], { programs: ["jit_g", "jit_f"] }))];
  expect(differences(a, b)).toEqual([]);
  expect(isSame(a, b, "x", "y")).toBe(true);
  const other = workloadOf(report([], { programs: ["jit_h"], hosts: 2 }));
  expect(differences(a, other)).toEqual(["2 hosts there, 1 here", "other programs, only there: jit_h, only here: jit_f, jit_g"]);
  const none = workloadOf(report([], { programs: [] }));
  expect(isSame(none, none, "train_1", "train_2")).toBe(true);
  expect(isSame(none, none, "train_1", "serve_2")).toBe(false);
});

test("looked at are earlier runs of as many hosts, those of the same name first", () => {
  const row = (run: string, captured_ms: number | null, hosts = 1, state: RunRow["state"] = "ready", program?: string): RunRow => ({
    run, captured_ms, captured_from: "name", hosts, bytes: 1, state, note: "", ...(program ? { facts: { workload: program, device_type: "TPU" } as RunRow["facts"] & object } : {}),
  });
  const mine = { programs: ["jit_f", "jit_g"], device: "TPU", hosts: 1 };
  const runs = [row("train_5", 50), row("train_4", 40), row("serve_3", 30), row("train_2", 20), row("train_1", 10, 2), row("train_0", 5, 1, "empty"), row("train_x", null)];
  expect(candidates(runs, "train_4", 40, mine).map((r) => r.run)).toEqual(["train_2", "serve_3"]);
  expect(candidates(runs, "train_4", null, mine)).toEqual([]);
  // What the list knows of them: others are not opened at all.
  const known = [row("a_1", 30, 1, "ready", "jit_other"), row("b_1", 20, 1, "ready", "jit_g.7"), row("c_1", 25), row("train_3", 10, 1, "ready", "jit_f")];
  expect(candidates(known, "train_4", 40, mine).map((r) => r.run)).toEqual(["train_3", "b_1", "c_1"]);
  expect(candidates(known, "train_4", 40, { ...mine, device: "GPU" }).map((r) => r.run)).toEqual(["c_1"]);
  expect(candidates(known, "train_4", 40, { ...mine, programs: [] }).length).toBe(4);
});

test("what is new, gone and changed since the report before", () => {
  const s = since(report([finding("idle", "P1", 0.2), finding("copies", "P1", 0.3)], { step: 90 }), report([finding("idle", "P1", 0.4), finding("input_bound", "P0", 0.5)]), "before");
  expect(s.fresh).toEqual(["copies"]);
  expect(s.gone).toEqual([{ rule: "input_bound", words: "about input_bound", was: 0.5 }]);
  expect([...s.changed].map(([rule, c]) => [rule, c.words])).toEqual([["copies", "new"], ["idle", "was 40.0 %"]]);
  expect(sinceWords(s)).toBe("Findings: 1 new, 1 gone, 1 changed. A step takes 90 ps instead of 100 ps (\u221210.0 %).");
  expect(sinceWords(since(report([]), report([]), "b"))).toMatch(/^No findings in either\./);
});

test("as Markdown it is all there, and names are no markup", () => {
  const evil = "[x](javascript:1) <img>";
  const evidence = table("evidence", ["rule", "evidence", "share", "tool", "op"], [["idle", evil, 0.2, "trace", null]]);
  const r = report([finding("idle", "P1", 0.2, 20)], { tables: [evidence, table("summary", ["sentence"], [["It waits."]])] });
  const text = suggestionsMarkdown(r, `of ${evil}`, since(r, report([]), evil), () => "http://here/x", "http://here/page");
  expect(text).toMatch(/^## of \\\[x\\\]\\\(javascript:1\\\) \\<img\\>/);
  expect(text).toContain("**NEEDS ATTENTION**\n\nIt waits.\n");
  expect(text).toContain("### P1: about idle (20.0 % of the time; new)");
  expect(text).toContain("- [\\[x\\]\\(javascript:1\\) \\<img\\>: 20.0 %](http://here/x)");
  expect(text).toContain("Expected impact: At most 20 ps of each step.\n\nFix: do less");
  expect(text.trimEnd()).toMatch(/http:\/\/here\/page$/);
});
