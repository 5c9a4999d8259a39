// Where in the timeline a figure of a report comes from: the longest pause, the longest step, an op.
import type { Cell, Report, Table } from "../api/report";
import { opColumns, opOf, timeOf } from "./ops";
import { timelineHref, type ToolUrl } from "./toolurl";
import { asNumber } from "./units";

export interface Why {
  href: string;
  what: string;
}

function longest(t: Table, at: number): readonly Cell[] | null {
  return t.rows.reduce<readonly Cell[] | null>((best, row) => (asNumber(row[at]) > (best ? asNumber(best[at]) : 0) ? row : best), null);
}

function windowHref(t: Table, row: readonly Cell[], unit: string, what: string, s: ToolUrl, root: string): Why | null {
  const c = opColumns(t);
  const when = timeOf(row, c, unit);
  if (!when) return null;
  const { op, program } = opOf(row, c);
  const id = t.id === "windows" && op ? { op, ...(program ? { program } : {}) } : {};
  return { href: timelineHref(root, s, { begin: when.begin, duration: when.duration, ...(when.host ? { host: when.host } : {}), ...id }), what };
}

/** The window that explains a metric best, and what is there; null: no single one does. */
export function whyHref(r: Report, id: string, s: ToolUrl, root: string): Why | null {
  const told = r.tables.find((x) => x.id === "windows");
  const at = (name: string): number => told?.columns.findIndex((c) => c.id === name) ?? -1;
  const mine = told?.rows.find((x) => x[at("metric")] === id);
  if (told && mine) return windowHref(told, mine, "ps", String(mine[at("what")] ?? ""), s, root);
  const [table, what] = /idle|duty/.test(id) ? ["pauses", "the longest pause"] : id === "steps" ? ["steps", "the longest step"] : ["", ""];
  const t = r.tables.find((x) => x.id === table);
  const time = t?.columns.findIndex((c) => c.id === "time") ?? -1;
  const row = t && time >= 0 ? longest(t, time) : null;
  return t && row ? windowHref(t, row, t.columns[time]!.unit, what, s, root) : null;
}
