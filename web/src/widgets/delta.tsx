// By how much a row changed: signed, with a bar, and in colour where more is worse or better.
import type { Cell } from "../api/report";
import { asNumber, exact, signed } from "../model/units";

/** `most`: the largest change of all rows, whose bar is whole. `worse`: what more of it is; null: neither. */
export function Delta({ v, unit, most, worse }: { v: Cell | undefined; unit: string; most: number; worse: boolean | null }) {
  const d = asNumber(v);
  const tone = worse === null || d === 0 || Number.isNaN(d) ? "" : d > 0 === worse ? "bad" : "good";
  return (
    <span class={`delta-cell ${tone}`} title={exact(v, unit)}>
      <span class="delta-bar" style={{ width: `${most > 0 ? Math.min(100, (Math.abs(d) / most) * 100) : 0}%` }} />
      {unit === "fraction" ? `${signed(Number((d * 100).toPrecision(3)), "")} points` : signed(typeof v === "bigint" ? v : d, unit)}
    </span>
  );
}
