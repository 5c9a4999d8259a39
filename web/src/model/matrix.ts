// A series of many names as rows by columns.
import type { Cell, Series } from "../api/report";
import { asNumber, natural } from "./units";

export type Order = "name" | "late";

export interface Matrix {
  values: Float64Array; // row major
  rows: number;
  columns: number;
  low: number;
  high: number;
  means: Float64Array;
}

export function matrixOf(s: Series): Matrix {
  const rows = s.names.length;
  const columns = s.points.length;
  const values = new Float64Array(rows * columns).fill(NaN);
  let low = Infinity;
  let high = -Infinity;
  const means = new Float64Array(rows);
  for (let r = 0; r < rows; r++) {
    let sum = 0;
    let n = 0;
    for (let c = 0; c < columns; c++) {
      const v = asNumber(s.points[c]![r + 1]);
      values[r * columns + c] = v;
      if (Number.isNaN(v)) continue;
      low = Math.min(low, v);
      high = Math.max(high, v);
      sum += v;
      n++;
    }
    means[r] = n ? sum / n : NaN;
  }
  return { values, rows, columns, low: Number.isFinite(low) ? low : 0, high: Number.isFinite(high) ? high : 0, means };
}

export function rowOrder(m: Matrix, names: readonly string[], order: Order): number[] {
  const rows = names.map((_, i) => i);
  if (order === "late") return rows.sort((a, b) => (m.means[b] || 0) - (m.means[a] || 0) || a - b);
  const keys = names.map(natural);
  return rows.sort((a, b) => (keys[a]! < keys[b]! ? -1 : keys[a]! > keys[b]! ? 1 : 0));
}

/** A heat series in its long form: each point is x, a row's number, and one value a measure. */
export function measuresOf(s: Series): string[] {
  return s.kind === "heat" && s.names[0] === "host" ? s.names.slice(1) : [];
}

/** The long form as rows by columns of one measure; `rows` are the names of the numbers. */
export function pivot(s: Series, measure: string, rows: readonly string[]): Series {
  const at = s.names.indexOf(measure) + 1;
  const seen = new Set<number>();
  const columns = new Map<string, Cell[]>();
  for (const p of s.points) {
    const row = Number(p[1]);
    if (!Number.isInteger(row) || row < 0 || row > 100_000) continue;
    seen.add(row);
    const key = String(p[0]);
    const column = columns.get(key) ?? [p[0] ?? null];
    columns.set(key, column);
    column[row + 1] = p[at] ?? null;
  }
  const used = [...seen].sort((a, b) => a - b);
  return {
    ...s, names: used.map((i) => rows[i] ?? `host ${i}`), total_points: columns.size,
    points: [...columns.values()].map((c) => [c[0]!, ...used.map((i) => c[i + 1] ?? null)]),
  };
}
