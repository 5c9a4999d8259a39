// The area's statistics as a table of the kind that filters know: words, columns, amounts with units.
import type { Column } from "../api/report";
import { big } from "../api/json";
import type { AggregateRow } from "../api/types";
import { choose, parseFilter } from "./tablemodel";
import { areaColumns } from "./url";

const columns: Column[] = [
  ...areaColumns.map((id): Column => ({ id, label: id.replace(/_ps$/, ""), unit: id.endsWith("_ps") ? "ps" : "", type: id === "name" ? "text" : "number" })),
  { id: "plane", label: "plane", unit: "", type: "text" },
];

export interface Filtered {
  rows: AggregateRow[];
  count: number; // of events
  self: bigint; // ps
  errors: string[];
}

/** plane: its name by its number. */
export function filterArea(rows: readonly AggregateRow[], plane: (n: number) => string, q: string): Filtered {
  const filter = parseFilter(q, columns);
  const cells = rows.map((r) => [...areaColumns.map((id) => r[id]), plane(r.plane)]);
  const kept = Array.from(choose({ columns, rows: cells }, filter), (i) => rows[i]!);
  return {
    rows: kept, errors: filter.errors,
    count: kept.reduce((a, r) => a + Number(r.count), 0), self: kept.reduce((a, r) => a + big(r.self_ps), 0n),
  };
}
