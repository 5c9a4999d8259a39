import { expect, test } from "vitest";
import type { Report } from "../src/api/report";
import { asReport } from "../src/api/report";
import { parseTool } from "../src/model/toolurl";
import { whyHref } from "../src/model/why";

const column = (id: string, unit = "") => ({ id, label: id, unit, type: unit ? ("number" as const) : ("text" as const) });

const report: Report = asReport({
  tool: "overview_page",
  tables: [{
    id: "pauses", title: "", note: null, total_rows: 2, rest: null, sort: null,
    columns: [column("host"), column("first_plane"), column("first_begin_ps", "ps"), column("time", "ps")],
    rows: [["w-0", "/device:TPU:0", 1000, 50], ["w-1", "/device:TPU:0", 9000, 70]],
  }],
});

test("idle time leads to the longest pause, on its host", () => {
  const why = whyHref(report, "idle_fraction", parseTool("?run=r"), "/p/x/");
  expect(why).toEqual({ href: "/p/x/trace?run=r&host=w-1&t=8790..9280", what: "the longest pause" });
});

test("what no single window explains leads nowhere of its own", () => {
  expect(whyHref(report, "mxu_utilization", parseTool("?run=r"), "/p/x/")).toBeNull();
  expect(whyHref(report, "steps", parseTool("?run=r"), "/p/x/")).toBeNull();
});

test("a figure of which the report says where to look leads there, with the op", () => {
  const told: Report = asReport({
    tool: "overview_page",
    tables: [{
      id: "windows", title: "", note: null, total_rows: 2, rest: null, sort: null,
      columns: [column("metric"), column("what"), column("op"), column("program_id"), column("host"), column("first_plane"), column("first_begin_ps", "ps"), column("duration", "ps")],
      rows: [["step_time_mean", "the longest step", null, null, "w-1", "/device:TPU:0", 9000, 100], ["hbm_rate", "the op", "copy.1", "7", "w-0", "/device:TPU:0", 1000, 100]],
    }],
  });
  const s = parseTool("?run=r");
  expect(whyHref(told, "step_time_mean", s, "/p/x/")).toEqual({ href: "/p/x/trace?run=r&host=w-1&t=8700..9400", what: "the longest step" });
  expect(whyHref(told, "hbm_rate", s, "/p/x/")?.href).toMatch(/host=w-0.*t=700..1400.*&op=copy.1&program=7/);
  expect(whyHref(told, "flop_rate", s, "/p/x/")).toBeNull();
});
