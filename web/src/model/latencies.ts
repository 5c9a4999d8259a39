// What the report of requests says about how long they took.
import type { Report, Series } from "../api/report";
import { asNumber, show } from "./units";

/** A place on an axis that has a name. */
export interface Mark {
  at: number;
  label: string;
}

/** The models that requests were for, as the report lists them. */
export function modelsOf(r: Report): string[] {
  const t = r.tables.find((x) => x.id === "models");
  const at = t?.columns.findIndex((c) => c.id === "model") ?? -1;
  return t && at >= 0 ? t.rows.map((row) => row[at]).filter((v): v is string => typeof v === "string") : [];
}

export function percentileMarks(r: Report): Mark[] {
  return (["50", "90", "99"] as const).flatMap((p) => {
    const m = r.metrics.find((x) => x.id === `latency_p${p}`);
    return m && m.value !== null ? [{ at: asNumber(m.value), label: `p${p} ${show(m.value, m.unit)}` }] : [];
  });
}

export const isDistribution = (x: Series): boolean => x.id === "latencies";

export const otherSeries = (r: Report): Series[] => r.series.filter((x) => !isDistribution(x));
