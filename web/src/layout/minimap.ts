// Busy share of each column of the session, 0 … 1.
import type { Window } from "../api/window";

export function busyColumns(w: Window, columns: number): Float64Array<ArrayBuffer> {
  const out = new Float64Array(columns);
  const span = Number(w.t1 - w.t0);
  const lines = new Set(w.lanes.map((l) => l.line)).size;
  if (span <= 0 || lines === 0) return out;
  const k = columns / span;
  for (const lane of w.lanes) {
    if (lane.lane > 0) continue; // nested events would count twice
    for (let i = 0; i < lane.begin.length; i++) {
      const length = lane.duration[i]!;
      const density = length > 0 ? Math.min(1, (lane.busyOf?.[i] ?? length) / length) : 0;
      addSpan(out, lane.begin[i]! * k, (lane.begin[i]! + length) * k, density / lines);
    }
  }
  return out;
}

function addSpan(out: Float64Array, from: number, to: number, weight: number): void {
  const low = Math.max(0, from);
  const high = Math.min(out.length, to);
  for (let c = Math.floor(low); c < high; c++) out[c]! += weight * (Math.min(high, c + 1) - Math.max(low, c));
}
