import { expect, test } from "vitest";
import type { EventDetails } from "../src/api/types";
import type { Cell, Table } from "../src/api/report";
import { actionsOf, deviceOfPart, lanesOf, linksOf, momentOfPart } from "../src/model/actions";
import { channelsOf, chipsOf, edgesOf, planesOf, topologyOf } from "../src/model/torus";

const table = (id: string, columns: string[], rows: Cell[][]): Table => ({
  id, title: id, note: null, columns: columns.map((c) => ({ id: c, label: c, unit: "", type: "number" })), rows, total_rows: rows.length, rest: null, sort: null,
});

const chips = table("chips", ["host", "core", "id", "chip", "core_in_chip", "slice", "x", "y", "z", "own_time", "first_begin_ps"], [
  ["a", "/device:TPU:0", 0, 0, 0, 0, 0, 0, 0, 5, null], ["a", "/device:TPU:1", 1, 0, 1, 0, 0, 0, 0, 6, 12],
  ["b", "/device:TPU:0", 2, 1, 0, 0, 1, 0, 0, null, null], ["b", "/device:TPU:1", 3, 0, 0, 1, 0, 0, 1, 9, null],
]);

test("chips stand in planes by slice and z, as wide as their numbers reach", () => {
  const got = planesOf(chipsOf(chips));
  expect(got.map((p) => [p.slice, p.z, p.columns, p.rows, p.parts, p.chips.length])).toEqual([[0, 0, 2, 1, 2, 3], [1, 1, 1, 1, 1, 1]]);
});

test("chips with numbers far apart stand beside each other", () => {
  const far = chipsOf(table("chips", ["x", "y"], [[0, 1048573], [0, 5], [2, 5]]));
  const [p] = planesOf(far);
  expect([p!.columns, p!.rows, p!.row.get(1048573), p!.column.get(2)]).toEqual([3, 2, 1, 2]);
});

test("a measure that is not known is none, and is not 0", () => {
  const got = chipsOf(chips);
  expect(got[0]!.values[0]).toBe(5);
  expect(got[2]!.values[0]).toBeNaN();
  expect(got[0]!.values[1]).toBeNaN();
  expect([got[0]!.begin, got[1]!.begin]).toEqual([null, 12]);
});

test("edges are drawn where both ends are here, the others are counted", () => {
  const t = table("edges", ["from", "from_host", "from_core", "host", "core", "mean_time"], [
    [0, "a", "/device:TPU:0", "b", "/device:TPU:0", 7], [null, null, null, "b", "/device:TPU:0", 8], [9, null, null, "a", "/device:TPU:0", 9],
  ]);
  const got = edgesOf(t, chipsOf(chips));
  expect(got.edges.map((e) => [e.from, e.to, e.latency])).toEqual([[0, 2, 7]]);
  expect([got.open, got.untold]).toEqual([1, 1]);
});

test("a channel without a key cannot be chosen", () => {
  expect(channelsOf(table("channels", ["key", "op", "channel", "kind"], [["p:1", "p", 5, "send"], [null, "q", null, "recv"]])).map((c) => [c.key, c.channel])).toEqual([["p:1", "5"]]);
});

test("the size of a torus has room for its chips", () => {
  expect(topologyOf("4x8", 32)).toEqual([4, 8]);
  expect(topologyOf(" 2x2x4 ", 16)).toEqual([2, 2, 4]);
  for (const bad of ["4", "4x", "x4", "4x8x", "2x2x2x2", "0x4", "2x2", "99999x99999", "4 x 8", "-1x4"]) expect(topologyOf(bad, 16)).toBeNull();
});

const actions = table("actions", ["kind", "operation", "after", "duration", "bytes", "first_begin_ps", "first_host", "first_plane"], [
  ["send", "send.1", 0, 10, null, 100, "h", "p"], ["network receive", "R", 5, 20, 64, 105, "h", "p"], ["network receive", "R", 15, 20, 64, 115, "h", "p"],
  ["network receive", "R", 25, null, null, 125, "h", "p"], ["<b>", "odd", 30, 1, null, "no", "h", "p"],
]);

test("what overlaps in a lane stands in rows of its own", () => {
  const { lanes, row, rows } = lanesOf(actionsOf(actions));
  expect(lanes.map((l) => [l.kind, l.row, l.rows])).toEqual([["send", 0, 1], ["network receive", 1, 2], ["<b>", 3, 1]]);
  expect(row).toEqual([0, 1, 2, 1, 3]);
  expect(rows).toBe(4);
});

test("of an action what is known is told", () => {
  const got = actionsOf(actions);
  expect(got[1]!.facts).toEqual([["bytes", "", 64]]);
  expect(got[3]!.duration).toBeNaN();
  expect(got[4]!.begin).toBeNull();
});

test("links to what is not there are none", () => {
  expect(linksOf(table("l", ["from", "to", "basis"], [[0, 1, "x"], [1, 9, "y"], [null, 1, "z"]]), 5)).toEqual([{ from: 0, to: 1, basis: "x" }]);
  expect(linksOf(undefined, 5)).toEqual([]);
});

test("an event belongs to a transfer by its op, or by its graph key", () => {
  const event = (name: string, plane: string, args: [string, string][] = []): EventDetails =>
    ({ name, display_name: "", plane_name: plane, begin_ps: 100, duration_ps: 7, args: args.map(([n, value]) => ({ name: n, value })) }) as unknown as EventDetails;
  expect(momentOfPart(event("send-done.3", "/device:TPU:1"))).toBe(100n);
  expect(momentOfPart(event("NetworkSend END", "/device:CUSTOM:Megascale Trace", [["graph_key", "device_0_gid_a"]]))).toBe(107n);
  expect(momentOfPart(event("NetworkSend END", "/device:CUSTOM:Megascale Trace"))).toBeNull();
  expect(deviceOfPart(event("send-done.3", "/device:TPU:1"))).toBe("1");
  expect(deviceOfPart(event("NetworkSend END", "/device:CUSTOM:Megascale Trace", [["graph_key", "device_0_gid_a"]]))).toBe("");
  expect(momentOfPart(event("send.3", "/host:CPU"))).toBeNull();
  expect(momentOfPart(event("sender", "/device:TPU:0"))).toBeNull();
});
