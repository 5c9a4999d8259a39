import { expect, test } from "vitest";
import { apiUrl, place } from "../src/api/base";

test("the project and the page are found below any prefix", () => {
  expect(place("/p/local/")).toEqual({ root: "/p/local/", project: "local", page: "" });
  expect(place("/p/local/trace")).toEqual({ root: "/p/local/", project: "local", page: "trace" });
  expect(place("/proxy/8791/p/team-a/run")).toEqual({ root: "/proxy/8791/p/team-a/", project: "team-a", page: "run" });
  expect(place("/p/x/p/local/trace")).toEqual({ root: "/p/x/p/local/", project: "local", page: "trace" });
  expect(place("/p/local")).toEqual({ root: "/p/local/", project: "local", page: "" });
});

test("any name survives as a parameter", () => {
  const url = apiUrl("/p/local/", "run", { run: "a/../b &<script>?#\u0000é", host: undefined });
  expect(new URL(url, "http://x").searchParams.get("run")).toBe("a/../b &<script>?#\u0000é");
  expect(url).not.toContain("host");
});
