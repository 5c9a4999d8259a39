import { expect, test } from "vitest";
import { MOST_MARKS, parseLabels, readMarks, withMark } from "../src/model/runmarks";
import { joinRuns, runHref, runTitle } from "../src/model/runname";

test("labels are each once, none empty, few and short", () => {
  expect(parseLabels(" a, b ,,a, c d ")).toEqual(["a", "b", "c d"]);
  expect(parseLabels("")).toEqual([]);
  expect(parseLabels(Array.from({ length: 50 }, (_, i) => `l${i}`).join(",")).length).toBe(8);
  expect(parseLabels("x".repeat(500))[0]!.length).toBe(40);
});

test("a run is marked, changed, and forgotten when nothing is left of it", () => {
  let list = withMark([], "/p/a/", "r", { labels: ["x"] });
  list = withMark(list, "/p/b/", "r", { note: "other project" });
  list = withMark(list, "/p/a/", "r", { hidden: true });
  expect(list).toEqual([
    { root: "/p/b/", run: "r", labels: [], note: "other project", hidden: false },
    { root: "/p/a/", run: "r", labels: ["x"], note: "", hidden: true },
  ]);
  list = withMark(list, "/p/a/", "r", { hidden: false });
  expect(withMark(list, "/p/a/", "r", { labels: [] }).map((m) => m.root)).toEqual(["/p/b/"]);
  expect(readMarks(JSON.stringify(list))).toEqual(list);
});

test("what was stored by another, or is too much, is left out", () => {
  for (const text of [null, "", "{", "{}", "7", "null", '[null,1,{"root":1}]', '[{"root":"a","run":"r","labels":[1],"note":"","hidden":false}]']) expect(readMarks(text)).toEqual([]);
  let list = withMark([], "/", "first", { note: "n" });
  for (let i = 0; i < MOST_MARKS; i++) list = withMark(list, "/", `r${i}`, { note: "n" });
  expect(list.length).toBe(MOST_MARKS);
  expect(list.some((m) => m.run === "first")).toBe(false);
});

test("a joined run is called as its parts are", () => {
  const run = joinRuns(["exp/a", "exp/b"]);
  expect(run).toBe("exp/a//exp/b");
  expect(runTitle(run)).toBe("exp/a + exp/b");
  expect(runTitle("exp/a")).toBe("exp/a");
  expect(runHref("/p/l/", run)).toBe("/p/l/run?run=exp%2Fa%2F%2Fexp%2Fb");
});
