// Where in the timeline a figure of a report comes from: the longest pause, the longest step.
import type { Cell, Report, Table } from "../api/report";
import { opColumns, timeOf } from "./ops";
import { timelineHref, type ToolUrl } from "./toolurl";
import { asNumber } from "./units";

function longest(t: Table, at: number): readonly Cell[] | null {
  return t.rows.reduce<readonly Cell[] | null>((best, row) => (asNumber(row[at]) > (best ? asNumber(best[at]) : 0) ? row : best), null);
}

/** The window that explains a metric best, and what is there; null: no single one does. */
export function whyHref(r: Report, id: string, s: ToolUrl, root: string): { href: string; what: string } | null {
  const [table, what] = /idle|duty/.test(id) ? ["pauses", "the longest pause"] : id === "steps" ? ["steps", "the longest step"] : ["", ""];
  const t = r.tables.find((x) => x.id === table);
  const time = t?.columns.findIndex((c) => c.id === "time") ?? -1;
  const row = t && time >= 0 ? longest(t, time) : null;
  const when = t && row && timeOf(row, opColumns(t), t.columns[time]!.unit);
  if (!when) return null;
  return { href: timelineHref(root, s, { begin: when.begin, duration: when.duration, ...(when.host ? { host: when.host } : {}) }), what };
}
