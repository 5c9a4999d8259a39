// Rows that sum up others: the page that lists what is in one, filtered so.
import type { Cell, Table } from "../api/report";
import { groupFilter } from "./tablemodel";
import { elsewhere, toolHref, type ToolUrl } from "./toolurl";
import { TIMELINE } from "./tools";

export interface Groups {
  page: string;
  q: string; // the filter's parameter there
  column: string; // there
  what: string;
}

const ops = (column: string): Groups => ({ page: "hlo_stats", q: "q", column, what: "Its ops" });

const GROUPS: Record<string, Groups | undefined> = {
  categories: ops("category"), layers: ops("layer"), sources: ops("source"),
  device_types: { page: "framework_op_stats", q: "q", column: "type", what: "Its operations" },
  host_types: { page: "framework_op_stats", q: "q.host", column: "type", what: "Its operations" },
  stages: { page: "input_pipeline_analyzer", q: "q.input_ops", column: "kind", what: "Its ops" },
};

/** Of a table whose rows are groups; null: they are none, or nobody lists what is in them. */
export const groupOf = (t: Pick<Table, "id">): Groups | null => GROUPS[t.id] ?? null;

/** "": what the row has no name for. */
export function groupHref(g: Groups, t: Table, row: readonly Cell[], s: ToolUrl, root: string): string {
  const name = row[0];
  if (typeof name !== "string" || name === "" || name.startsWith("(")) return "";
  const filter = groupFilter("", { ...t.columns[0]!, id: g.column }, name);
  return root + g.page + (g.q === "q" ? elsewhere(s, { q: filter }) : elsewhere(s, { args: { [g.q]: filter } }));
}

/** The timeline of the host that a row is about. */
export function hostHref(t: Table, row: readonly Cell[], s: ToolUrl, root: string): string {
  const at = t.id === "hosts" ? t.columns.findIndex((c) => c.id === "host") : -1;
  return at >= 0 && typeof row[at] === "string" ? toolHref(root, TIMELINE, { ...s, hosts: [row[at]] }) : "";
}
