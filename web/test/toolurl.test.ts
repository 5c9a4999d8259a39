import { expect, test } from "vitest";
import { compareHref, elsewhere, formatSteps, formatTool, parseSteps, parseTool, rangeArguments, timelineHref, toolHref } from "../src/model/toolurl";
import { tools } from "../src/model/tools";

test("the address of a tool is read and written without loss", () => {
  const text = "?run=train/run1&host=a&host=b&op=fusion.7&program=42&q=self>10us&sort=-self_time&module_name=jit_f";
  const s = parseTool(text);
  expect(s).toMatchObject({ run: "train/run1", hosts: ["a", "b"], op: "fusion.7", program: "42", q: "self>10us", sort: "-self_time", args: { module_name: "jit_f" } });
  expect(formatTool(s)).toBe(text);
});

test("run, hosts, op and window go along to the next tool, its filter does not", () => {
  const s = parseTool("?run=r&host=h&op=add.1&t=1..2&q=x&sort=a&view=icicle");
  expect(elsewhere(s)).toBe("?run=r&host=h&op=add.1&t=1..2");
  expect(toolHref("/p/local/", "hlo_stats", s)).toBe("/p/local/hlo_stats?run=r&host=h&op=add.1&t=1..2");
});

test("what only the timeline knows stays there", () => {
  expect(parseTool("?run=r&sel=5&fold=1,2&a=1..2&ar=3&top=9").args).toEqual({});
});

test("a stretch of time is shown as it is, with little around it", () => {
  const s = parseTool("?run=r&host=h");
  expect(timelineHref("/p/l/", s, { begin: 1_000_000n, duration: 1000n, window: true })).toContain("t=999950..1001050");
  expect(timelineHref("/p/l/", s, { begin: 1_000_000n, duration: 1000n })).toContain("t=997000..1004000");
});

test("an occurrence opens the timeline around it, its op lit", () => {
  const href = timelineHref("/p/local/", parseTool("?run=r&host=h"), { op: "all-reduce.1", program: "9", begin: 1_000_000n, duration: 1000 });
  const p = new URLSearchParams(href.slice(href.indexOf("?")));
  expect(p.get("run")).toBe("r");
  expect(p.get("host")).toBe("h");
  expect(p.get("t")).toBe("997000..1004000");
  expect(p.get("q")).toBe('"all-reduce.1"');
  expect(p.get("op")).toBe("all-reduce.1");
});

test("hostile names are encoded and come back as they were", () => {
  const op = `<img src=x onerror=alert(1)>&"#?=%`;
  expect(parseTool(formatTool({ ...parseTool("?run=r"), op })).op).toBe(op);
});

test("each tool has a key of its own, and none is one of the shell's", () => {
  const keys = tools.map((t) => t.key);
  expect(new Set(keys).size).toBe(keys.length);
  expect(keys.filter((k) => k === "a" || k === "v")).toEqual([]);
});

test("a part of the run goes along to every page and to the server", () => {
  const range = parseTool("?run=r&range=-5..900&q=x");
  expect(elsewhere(range)).toBe("?run=r&range=-5..900");
  expect(toolHref("/p/l/", "trace", range)).toBe("/p/l/trace?run=r&range=-5..900");
  expect(rangeArguments(range)).toEqual({ t0: "-5", t1: "900" });
  expect(timelineHref("/p/l/", range, { begin: null })).toContain("&range=-5..900");
  const steps = parseTool("?run=r&steps=10-20");
  expect(elsewhere(steps)).toBe("?run=r&steps=10-20");
  expect(rangeArguments(steps)).toEqual({ steps: "10-20" });
  expect(rangeArguments(parseTool("?run=r"))).toEqual({});
});

test("what a step is goes along to every page and to the server", () => {
  const s = parseTool("?run=r&step_marker=jit_f&steps=3&q=x");
  expect(s.args).toEqual({});
  expect(elsewhere(s)).toBe("?run=r&steps=3&step_marker=jit_f");
  expect(rangeArguments(s)).toEqual({ steps: "3", step_marker: "jit_f" });
  expect(rangeArguments(parseTool("?run=r&step_marker=a+b"))).toEqual({ step_marker: "a b" });
  expect(timelineHref("/p/l/", s, { begin: null })).toContain("&step_marker=jit_f&steps=3");
});

test("a part of the run that is none is left out", () => {
  for (const bad of ["range=9..1", "range=x", "steps=5-1", "steps=a-b", "steps=-1", "range="])
    expect(elsewhere(parseTool(`?run=r&${bad}`))).toBe("?run=r");
  expect(parseSteps("7")).toEqual({ first: 7, last: 7 });
  expect([formatSteps(9, 4), formatSteps(4, 4)]).toEqual(["4-9", "4"]);
});

test("Compare keeps to what a step is", () => {
  expect(compareHref("/p/a/", "", "")).toBe("/p/a/compare");
  expect(compareHref("/p/a/", "r 1", "?run=r+1&op=x")).toBe("/p/a/compare?a=r%201");
  expect(compareHref("/p/a/", "r", "?step_marker=jit_f")).toBe("/p/a/compare?a=r&step_marker=jit_f");
});
