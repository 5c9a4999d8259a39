import { expect, test } from "vitest";
import { nameMatches, parseQuery, rowMatches } from "../src/model/query";

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
