// Which values of a row's events are drawn as curves.
import { plural } from "../../model/format";
import { Loading } from "../../widgets/shell";
import type { Trace } from "./trace";

export function CurveList({ trace }: { trace: Trace }) {
  const { offered, list } = trace.curves;
  const o = offered.value;
  const nameOf = (line: number): string => {
    const row = trace.rows.value.byLine.get(line);
    return row ? `${row.plane.name} › ${row.line!.name || "(no name)"}` : `line ${line}`;
  };
  const others = list.value.filter((c) => c.line !== o?.line);
  if (!o && list.value.length === 0) return <Loading what="Looking at the events…" />;
  return (
    <div class="hits-list">
      {o && (
        <>
          <div class="dock-line"><b>{nameOf(o.line)}</b><span>{o.problem || (o.stats.length ? "numbers that its events carry: choose which are drawn below the row" : "its events carry no numbers")}</span></div>
          <div class="curve-choice">
            {o.stats.map((stat) => (
              <label key={stat}>
                <input type="checkbox" checked={trace.curves.has({ line: o.line, stat })} onChange={() => trace.toggleCurve({ line: o.line, stat })} /> {stat}
              </label>
            ))}
          </div>
        </>
      )}
      {others.length > 0 && (
        <>
          <div class="dock-line"><b>{plural(others.length, "curve")}</b><span>of other rows</span></div>
          <div class="curve-choice">
            {others.map((c) => (
              <label key={`${c.line} ${c.stat}`}>
                <input type="checkbox" checked onChange={() => trace.toggleCurve(c)} /> {nameOf(c.line)}: {c.stat}
              </label>
            ))}
          </div>
        </>
      )}
    </div>
  );
}
