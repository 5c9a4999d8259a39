import { expect, test } from "vitest";
import { asReport, type Report } from "../src/api/report";
import type { Argument, EventDetails } from "../src/api/types";
import { nearOf, opOfEvent } from "../src/model/near";
import { spread, stepsIn, stepsOf, tipsOf } from "../src/model/tips";

function report(...tables: { id: string; columns: string[]; rows: unknown[][] }[]): Report {
  return asReport({
    tables: tables.map((t) => ({ ...t, columns: t.columns.map((id) => ({ id, label: id, unit: "", type: "text" })), total_rows: t.rows.length })),
  } as unknown as Partial<Report>);
}

test("a suggestion has a place where the report says one", () => {
  const columns = ["rule", "priority", "share", "finding", "first_host", "first_plane", "first_begin_ps", "first_duration_ps"];
  const tips = tipsOf(report({ id: "findings", columns, rows: [
    ["copies", "P1", 0.1, "Ops wait", "w-0", "/device:TPU:0", 9007199254740993n, 5],
    ["input", "P0", null, "Input", null, null, null, null],
    ["point", "P2", 0, "At once", "w-1", "p", 7, 0],
  ] }));
  expect(tips.map((t) => t.place)).toEqual([
    { t0: 9007199254740993n, t1: 9007199254740998n, host: "w-0", plane: "/device:TPU:0" }, null, { t0: 7n, t1: 8n, host: "w-1", plane: "p" },
  ]);
  expect([tips[0]!.share, tips[1]!.share]).toEqual([0.1, NaN]);
  expect(tipsOf(report())).toEqual([]);
});

test("steps are in order of time, and say how far cores are apart", () => {
  const columns = ["step", "name", "shortest", "longest", "whole", "host", "first_plane", "first_begin_ps"];
  const steps = stepsOf(report({ id: "steps", columns, rows: [
    [2, null, 75, 100, true, "w-1", "p", 500], [1, "train 1", 100, 100, true, "w-0", "p", 100],
    [3, "cut", 1, 2, false, "w-0", "p", 700], [4, "nowhere", 1, 2, true, "w-0", "p", null],
  ] }));
  expect(steps.map((s) => [s.name, s.t0, s.t1, s.host, s.apart, s.times])).toEqual([["train 1", 100n, 200n, "w-0", 0, 1], ["2", 500n, 600n, "w-1", 0.25, 1]]);
  const long = stepsOf(report({ id: "steps", columns, rows: [10, 30, 10].map((n, i) => [i, "", n, n, true, "w", "p", i * 100]) }));
  expect(long.map((s) => s.times)).toEqual([1, 3, 1]);
});

test("of more steps than are drawn the longest of neighbours are, over the whole of what is in view", () => {
  const columns = ["step", "name", "shortest", "longest", "whole", "host", "first_plane", "first_begin_ps"];
  const steps = stepsOf(report({ id: "steps", columns, rows: Array.from({ length: 1000 }, (_, i) => [i, "", 10, i === 777 ? 90 : 10, true, "w", "p", i * 100]) }));
  const names = (from: bigint, to: bigint, most: number): string[] => stepsIn(steps, { t0: from, t1: to }, most).map((s) => s.name);
  expect(names(205n, 400n, 300)).toEqual(["2", "3", "4"]);
  expect(names(-5n, 50n, 300)).toEqual(["0"]);
  const few = names(0n, 100_000n, 10);
  expect(few).toHaveLength(10);
  expect(few).toContain("777");
  expect(Number(few[9])).toBeGreaterThanOrEqual(900);
});

test("marks stand beside each other and inside of the right edge", () => {
  expect(spread([], 24, 3, 100)).toEqual([]);
  expect(spread([0, 5, 60], 24, 3, 200)).toEqual([0, 27, 60]);
  expect(spread([190, 195, 199], 24, 3, 200)).toEqual([122, 149, 176]);
  const many = spread(Array(10).fill(90) as number[], 24, 3, 100);
  expect([Math.min(...many), Math.max(...many)].map(Math.round)).toEqual([0, 76]);
});

const nodes = { id: "nodes", columns: ["op", "opcode", "self_time", "shape", "distance", "more_operands", "more_users"], rows: [
  ["fusion.1", "fusion", 5, "f32[2]", 0, 1, 2], ["copy.1", "copy", 7, "f32[3]", 1, 0, 0], ["p.0", "parameter", null, "f32[4]", 1, 0, 0],
] };
const edges = { id: "edges", columns: ["from", "to"], rows: [["copy.1", "fusion.1"], ["copy.1", "fusion.1"], ["p.0", "fusion.1"], ["fusion.1", "tuple.2"]] };

test("operands and users of an op, each once, with what is not listed", () => {
  const near = nearOf(report(nodes, edges), "fusion.1")!;
  expect(near.operands.map((o) => [o.name, o.ran, o.shape])).toEqual([["copy.1", true, "f32[3]"], ["p.0", false, "f32[4]"]]);
  expect(near.users.map((o) => [o.name, o.ran])).toEqual([["tuple.2", false]]);
  expect(near.more).toBe(3);
});

test("a report about another op is none about this one", () => {
  expect(nearOf(report(nodes, edges), "fusion.2")).toBeNull();
  expect(nearOf(report(nodes, edges), "copy.1")).toBeNull();
  expect(nearOf(report(nodes), "fusion.1")).toBeNull();
});

test("an event is the run of an op where its arguments say so", () => {
  const event = (name: string, display: string, args: Record<string, string>): EventDetails =>
    ({ name, display_name: display, args: Object.entries(args).map(([k, value]): Argument => ({ name: k, value, type: "string", from: "event" })) }) as unknown as EventDetails;
  expect(opOfEvent(event("%fusion.7 = f32[2] fusion(%a)", "", { program_id: "9", hlo_category: "fusion" }))).toEqual({ op: "fusion.7", program: "9" });
  expect(opOfEvent(event("kernel", "", { hlo_op: "dot.3", hlo_module: "jit_f(12)" }))).toEqual({ op: "dot.3", program: "12" });
  expect(opOfEvent(event("wait", "", {}))).toBeNull();
  expect(opOfEvent(event("Step", "", { program_id: "9" }))).toBeNull();
});
