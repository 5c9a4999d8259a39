import { describe, expect, it } from "vitest";
import type { Cell, Report, Table } from "../src/api/report";
import { asReport } from "../src/api/report";
import { causesOf, kernelsOf, rangeOf, runsOf, shownKernel, shownRun, untold, versus } from "../src/model/kernels";
import { pickOf } from "../src/model/picks";

const table = (id: string, columns: string[], rows: Cell[][]): Table => ({
  id, title: id, note: null, columns: columns.map((c) => ({ id: c, label: c, unit: "", type: "text" })), rows, total_rows: rows.length, rest: null, sort: null,
});

const metric = (id: string, value: Cell) => ({ id, label: id, unit: "", value: value as never, reason: value === null ? "none" : null, note: null, definition: "", spread: null });

/** [id, label, time, share of what is recorded, stall, reason] */
function report(time: number, recorded: number, causes: Cell[][], regions: Cell[][] = [], begin: Cell = 1000): Report {
  return asReport({
    tool: "kernel_utilization", hosts: ["h"],
    metrics: [metric("kernel_name", "k.1"), metric("kernel_run_time", time), metric("kernel_recorded_fraction", recorded)],
    tables: [
      table("calls", ["op", "program_id", "time", "occurrences", "recorded"], [["k.1", "77", 450, 3, 1], ["k.2", null, 10, 1, 0]]),
      table("runs", ["occurrence", "duration_ps", "inside", "shown", "first_begin_ps", "first_host"], [[1, 100, null, false, 10, "h"], [2, time, "instructions", true, begin, "h"]]),
      table("stalls", ["id", "cause", "time", "recorded_share", "stall", "reason"], causes),
      table("regions", ["region", "line", "time"], regions),
      table("unit_times", ["unit", "recorded_share", "instructions", "schedule"], [["MXU0", 0.5, 10, null]]),
    ],
  });
}

const causes = (work: Cell, wait: Cell, rest: Cell): Cell[][] => [
  ["work", "Computes", work, work === null ? null : 0.6, false, work === null ? "no lines of instructions" : null],
  ["dma_in", "Waits for input copies", wait, wait === null ? null : 0.4, true, wait === null ? "no lines of instructions" : null],
  ["unrecorded", "Not recorded", rest, null, false, null],
];

describe("custom kernels", () => {
  it("are listed with what is told of them", () => {
    const r = report(200, 1, causes(120, 80, 0));
    expect(kernelsOf(r)[0]).toEqual({ op: "k.1", program: "77", time: 450, runs: 3, recorded: 1 });
    expect(kernelsOf(r)[1]!.program).toBe("");
    expect(runsOf(r).map((x) => x.number)).toEqual(["1", "2"]);
    expect(shownRun(r)?.inside).toBe("instructions");
    expect(kernelsOf(asReport({}))).toEqual([]);
    expect(shownRun(asReport({}))).toBeNull();
  });

  it("show the one of that program where two have one of that name", () => {
    const r = report(200, 1, []);
    r.tables[0]!.rows.unshift(["k.1", "76", 900, 3, 1]);
    expect(shownKernel(r)?.program).toBe("76");
    r.metrics.push(metric("kernel_program", "77"));
    expect(shownKernel(r)?.program).toBe("77");
    expect(shownKernel(asReport({}))).toBeNull();
  });

  it("have runs that are chosen by number and host, and given up with both", () => {
    const pick = pickOf(report(200, 1, []).tables[1]!)!;
    expect(pick.more([2, 200, null, true, 10, "h"])).toEqual({ on: "h" });
    expect(pick.gone).toEqual({ on: "" });
  });

  it("say once why causes are not told", () => {
    const r = report(200, 0, causes(null, null, 200));
    expect(untold(causesOf(r))).toEqual([{ reason: "no lines of instructions", labels: ["Computes", "Waits for input copies"] }]);
    expect(causesOf(r)[0]!.recorded).toBeNaN();
  });

  it("turn a span of a chart into a range of the session, in any order and beyond 2^53", () => {
    const points = [[0, 1], [5, 1], [10, 1]];
    expect(rangeOf(report(15, 1, []), points, 5, 5)).toEqual({ t0: 1005n, t1: 1010n });
    expect(rangeOf(report(15, 1, [], [], 9007199254740993n), points, 10, 0)).toEqual({ t0: 9007199254740993n, t1: 9007199254741008n });
    expect(rangeOf(asReport({}), points, 0, 5)).toBeNull();
    expect(rangeOf(report(15, 1, []), [], 0, 5)).toBeNull();
  });
});

describe("two versions of a kernel", () => {
  const regions = [["ep_wait_in", "XLA TraceMe", 80], ["gone", "XLA TraceMe", 5]];
  const a = report(200, 1, causes(120, 80, 0), regions);

  it("are told apart by the part that changed most", () => {
    const v = versus(a, report(300, 1, causes(125, 175, 0), [["ep_wait_in", "XLA TraceMe", 175], ["new", "XLA TraceMe", 1]]));
    expect(v.tone).toBe("good");
    expect(v.said).toContain("−33.3 %");
    expect(v.said).toContain("waits for input copies, −95");
    expect(v.warning).toBe("");
    expect(v.times.rows.map((r) => [r[0], r[2], r[3], r[4]])).toEqual([
      ["the run", 200, 300, -100], ["Computes", 120, 125, -5], ["Waits for input copies", 80, 175, -95],
      ["ep_wait_in", 80, 175, -95], ["gone", 5, null, null], ["new", null, 1, null],
    ]);
    expect(v.units.rows[0]!.slice(0, 4)).toEqual(["MXU0", 0.5, 0.5, 0]);
  });

  it("are the same where their times are, and worse where more", () => {
    expect(versus(a, report(200, 1, causes(120, 80, 0))).tone).toBe("");
    expect(versus(a, report(100, 1, causes(60, 40, 0))).tone).toBe("bad");
    expect(versus(a, asReport({})).said).toContain("not told");
  });

  it("are compared by their recorded parts where these are all there is", () => {
    const v = versus(report(1000, 0.1, causes(60, 40, 900)), report(2000, 0.05, causes(60, 40, 1900)));
    expect(v.warning).toContain("10.0 %");
    expect(v.said).not.toContain("largest");
    const rest = v.times.rows.find((r) => r[0] === "Not recorded")!;
    expect([rest[1], rest[5], rest[6]]).toEqual(["rest", null, null]);
    expect(v.times.rows.find((r) => r[0] === "Computes")![5]).toBe(0.6);
  });
});
