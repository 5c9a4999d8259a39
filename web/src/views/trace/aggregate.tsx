// Statistics of the selected area, by name.
import { big } from "../../api/json";
import type { Aggregate, AggregateRow } from "../../api/types";
import { filterArea } from "../../model/areatable";
import { count, duration, exactNs, percent, plural } from "../../model/format";
import { formatRange } from "../../model/toolurl";
import type { AreaOrder } from "../../model/url";
import { Copy } from "../../widgets/copy";
import { Icon } from "../../widgets/icon";
import { ProblemPanel } from "../../widgets/problem";
import { Loading } from "../../widgets/shell";
import { FlameGraph } from "./flame";
import { choosePart } from "./sync";
import type { Trace } from "./trace";

type Column = AreaOrder["by"];

const columns: { id: Column; label: string; title: string }[] = [
  { id: "name", label: "Name", title: "Name of the event" },
  { id: "count", label: "Count", title: "Events that overlap the area" },
  { id: "self_ps", label: "Self", title: "Time inside the area, without what is nested" },
  { id: "total_ps", label: "Total", title: "Time inside the area" },
  { id: "min_ps", label: "Min", title: "Shortest" },
  { id: "mean_ps", label: "Mean", title: "Mean" },
  { id: "p50_ps", label: "p50", title: "Half of the events are at most this long" },
  { id: "p99_ps", label: "p99", title: "99 % of the events are at most this long" },
  { id: "max_ps", label: "Max", title: "Longest" },
];

const times = columns.filter((c) => c.id !== "name" && c.id !== "count");

function compare(a: AggregateRow, b: AggregateRow, by: Column): number {
  if (by === "name") return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
  return Number(b[by]) - Number(a[by]);
}

function asTable(a: Aggregate): string {
  const head = ["plane", ...columns.map((c) => c.id)].join("\t");
  return [head, ...a.rows.map((r) => [r.plane, ...columns.map((c) => String(r[c.id]).replace(/[\t\n]/g, " "))].join("\t"))].join("\n");
}

function RowOf({ trace, row, self, plane }: { trace: Trace; row: AggregateRow; self: number; plane: string }) {
  const share = useSharePaint(Number(row.self_ps), self);
  return (
    <tr>
      <td class="name" title={`${row.name}\n${plane}`}>
        <div>
          <i class="swatch" style={{ background: trace.names.get(row.name, trace.tracks.value?.planes.find((p) => p.plane === row.plane)?.kind ?? "other").colour }} />
          <button type="button" class="link" title="Show the longest" onClick={() => trace.chooseId(row.longest_id, "area")}>{row.name || <i>no name</i>}</button>
          <span class="plane-name">{plane}</span>
        </div>
      </td>
      <td class="number">{count(row.count)}</td>
      {times.map((c) => (
        <td key={c.id} class="number" title={exactNs(big(row[c.id] as number))}>
          {c.id === "self_ps" && <i class="share" style={share} />}
          {row.approximate && c.id.startsWith("p") ? "≈ " : ""}{duration(big(row[c.id] as number))}
          {c.id === "self_ps" && <small>{percent(Number(row.self_ps), self)}</small>}
        </td>
      ))}
    </tr>
  );
}

function useSharePaint(part: number, whole: number): { width: string } {
  return { width: `${whole > 0 ? Math.max(1, (100 * part) / whole) : 0}%` };
}

export function AreaTable({ trace }: { trace: Trace }) {
  const { by, down } = trace.order.value;
  const area = trace.sum.area.value;
  const a = trace.sum.answer.value;
  const problem = trace.sum.problem.value;
  if (!area)
    return <p class="none">Hold <kbd>Shift</kbd> and drag over the timeline, or press <kbd>1</kbd> and drag, to sum up an area.</p>;
  if (problem) return <ProblemPanel small problem={problem} retry={() => trace.sum.again()} />;
  if (!a) return <Loading what="Adding up…" />;
  const planes = new Map(trace.tracks.value?.planes.map((p) => [p.plane, p.name]));
  const self = Number(a.self_ps);
  const planeOf = (n: number): string => planes.get(n) ?? "";
  const among = trace.among.value;
  const found = filterArea(a.rows, planeOf, among);
  const rows = found.rows.sort((x, y) => compare(x, y, by) * (down ? 1 : -1));
  const sort = (id: Column): void => {
    trace.step = true;
    trace.order.value = { by: id, down: by === id ? !down : true };
  };
  return (
    <div class="aggregate">
      <div class="dock-line">
        <b>{duration(area.t1 - area.t0, 5)}</b>
        <span>{plural(a.events, "event")}, {plural(a.names, "name")}</span>
        <span>self time {duration(big(a.self_ps))}</span>
        {a.loading && <span class="warn-text">the profile is still loading</span>}
        <span class="push row">
          <span class="switch" role="group" aria-label="Shown as">
            <button type="button" aria-pressed={!trace.flame.value} onClick={() => trace.showFlame(false)}>Table</button>
            <button type="button" aria-pressed={trace.flame.value} onClick={() => trace.showFlame(true)}>Flame graph</button>
          </span>
          <button type="button" class="button" title="Overview, ops, roofline and the other pages of the run: about this time only" onClick={() => choosePart(trace, formatRange(area))}><Icon name="area" /> All pages: only this time</button>
          <button type="button" class="button" onClick={() => trace.zoomTo(area)}><Icon name="fit" /> Zoom to it</button>
          <Copy text={() => asTable(a)} label="Copy table" title="Copy all rows, separated by tabs" />
          <button type="button" class="button" onClick={() => trace.setArea(null)}><Icon name="close" /> Clear</button>
        </span>
      </div>
      {!trace.flame.value && (
        <div class="row among">
          <search class="search">
            <Icon name="search" />
            <input
              type="text" spellcheck={false} autocomplete="off" aria-label="Filter the area's table" placeholder="word  -word  self>10us  count>=5  plane:TPU"
              value={among} aria-invalid={found.errors.length > 0} onInput={(e) => (trace.among.value = e.currentTarget.value)}
            />
          </search>
          {found.errors.length > 0
            ? <span class="filter-error" role="alert">{found.errors.join("; ")}</span>
            : among.trim() !== "" && (
              <span role="status">
                {plural(rows.length, "name")} of {count(a.rows.length)}: {plural(found.count, "event")}, self time <span title={exactNs(found.self)}>{duration(found.self)}</span>{self > 0 && `, ${percent(Number(found.self), self)}`}
                {a.rest.names > 0 && <span class="faint"> (of the {count(a.rows.length)} that are listed; {plural(a.rest.names, "further name")} not looked at)</span>}
              </span>
            )}
        </div>
      )}
      {trace.flame.value ? <FlameGraph trace={trace} area={area} /> : <table class="grid">
        <thead>
          <tr>
            {columns.map((c) => (
              <th key={c.id} scope="col" title={c.title} aria-sort={by === c.id ? (down ? "descending" : "ascending") : "none"}>
                <button type="button" onClick={() => sort(c.id)}>
                  {c.label}{by === c.id && <Icon name={down ? "down" : "up"} />}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((r) => <RowOf key={`${r.plane} ${r.name}`} trace={trace} row={r} self={self} plane={planeOf(r.plane)} />)}
          {a.rest.names > 0 && among.trim() === "" && (
            <tr class="rest">
              <td>{plural(a.rest.names, "further name")}</td>
              <td class="number">{count(a.rest.count)}</td>
              <td class="number">{duration(big(a.rest.self_ps))}</td>
              <td class="number">{duration(big(a.rest.total_ps))}</td>
              <td colSpan={5} />
            </tr>
          )}
        </tbody>
      </table>}
      {a.events === 0 && <p class="none">No event overlaps this area.</p>}
    </div>
  );
}
