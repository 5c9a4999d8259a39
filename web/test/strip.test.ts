import { expect, test } from "vitest";
import { asReport, type Cell } from "../src/api/report";
import { ROWS_MAX, stripOf } from "../src/model/strip";

function report(hosts: number, devices: number) {
  const rows: Cell[][] = [];
  for (let h = 0; h < hosts; h++)
    for (let d = 0; d < devices; d++) rows.push([`h${h}`, `/device:TPU:${d}`, d === 1 ? 0.25 : 0.75, d === 1 ? "0.a" : "z.k"]);
  const metric = (id: string, value: number) => ({ id, label: "", unit: "ps", value, reason: null, note: null, definition: "", spread: null });
  return asReport({
    metrics: [metric("activity_begin", 100), metric("activity_end", 400)],
    tables: [{ id: "devices", title: "", note: null, columns: [], rows, total_rows: rows.length, rest: null, sort: null }],
  });
}

test("few devices have a row each", () => {
  const s = stripOf(report(2, 2))!;
  expect(s).toMatchObject({ t0: 100n, t1: 400n, hosts: 2, devices: 4 });
  expect(s.rows.map((r) => `${r.host} ${r.device}`)).toEqual(["h0 /device:TPU:0", "h0 /device:TPU:1", "h1 /device:TPU:0", "h1 /device:TPU:1"]);
  expect([...s.rows[0]!.levels]).toEqual([35, -1, 20]);
});

test("of very many a row is a host, and says which of its devices is the least busy", () => {
  const s = stripOf(report(256, 2))!;
  expect(s.rows).toHaveLength(256);
  expect(s.rows[7]).toMatchObject({ host: "h7", devices: 2, busy: 0.5, least: { device: "/device:TPU:1", busy: 0.25 } });
  expect([...s.rows[7]!.levels]).toEqual([0, -1, 10]);
  expect(stripOf(report(1000, 1))!.rows.length).toBeLessThanOrEqual(ROWS_MAX);
});

test("a run without devices has no strip", () => {
  expect(stripOf(asReport({}))).toBeNull();
  expect(stripOf(report(0, 0))!.rows).toEqual([]);
});
