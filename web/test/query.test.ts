import { expect, test } from "vitest";
import { nameMatches, parseQuery, rowMatches, lastingText, parseLasting, withLasting } from "../src/model/query";

const hit = (q: string, name: string) => nameMatches(parseQuery(q), name);

test("all words must be in the name, whatever their case", () => {
  expect(hit("all reduce", "All-Reduce.1")).toBe(true);
  expect(hit("all gather", "all-reduce.1")).toBe(false);
});

test("a minus excludes, quotes keep words together, name: is the default", () => {
  expect(hit("fusion -copy", "fusion.1")).toBe(true);
  expect(hit("fusion -copy", "fusion copy")).toBe(false);
  expect(hit('"jit f"', "a jit f b")).toBe(true);
  expect(hit('"jit f"', "f jit")).toBe(false);
  expect(hit("name:conv", "convolution")).toBe(true);
  expect(hit('-name:"a b"', "x a b")).toBe(false);
});

test("what is about lines, planes and durations does not dim names", () => {
  expect(hit("line:Steps plane:TPU dur>10us", "anything")).toBe(true);
  expect(rowMatches(parseQuery("line:ops"), "/device:TPU:0", "XLA Ops")).toBe(true);
  expect(rowMatches(parseQuery("-plane:TPU"), "/device:TPU:0", "XLA Ops")).toBe(false);
});

test("only ASCII letters lose their case", () => {
  expect(hit("É", "é")).toBe(false);
  expect(hit("é", "café")).toBe(true);
});

test("unfinished input matches what it says so far", () => {
  expect(hit('"all re', "all reduce")).toBe(true);
  expect(hit("-", "a-b")).toBe(true);
  expect(hit("", "x")).toBe(true);
});

test("bounds of durations are read, put in place of each other, and taken away", () => {
  expect(parseLasting("copy dur>10us dur<=1.5ms")).toEqual({ least: 10_000_001, most: 1_500_000_000 });
  expect(parseLasting("dur>=2ns dur>=5ns")).toEqual({ least: 5000, most: Infinity });
  for (const q of ["copy", "", "dur>10", "dur>us", "-dur>1us"]) expect(parseLasting(q)).toBeNull();
  expect(withLasting("copy dur>10us", "least", "1ms")).toBe("copy dur>=1ms");
  expect(withLasting("copy dur>10us dur<1ms", "least", "")).toBe("copy dur<1ms");
  expect(lastingText("copy dur>=10us", "least")).toBe("10us");
  expect(lastingText("copy dur>=10us", "most")).toBe("");
});
