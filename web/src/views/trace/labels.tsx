// The column at the left: planes that fold, names of lines, counts.
import type { Row } from "../../layout/rows";
import { px } from "../../layout/unit";
import { count, plural, shortCount } from "../../model/format";
import { Icon } from "../../widgets/icon";
import { plain } from "../../model/units";
import { curveValue } from "./curves";
import { MoreRows } from "./finder";
import type { Trace } from "./trace";

const labelHeight = (): number => px(22);

function Heading({ trace, row }: { trace: Trace; row: Row }) {
  const { plane, folded } = row;
  const lines = plane.lines_total ?? plane.lines.length;
  const state = plane.state === "ready" ? "" : plane.state;
  return (
    <button
      class="plane"
      type="button"
      aria-expanded={!folded}
      onClick={() => trace.toggleFold(plane.plane)}
      title={`${plane.name || "(no name)"}: ${plural(plane.events, "event")} on ${plural(lines, "line")}`}
    >
      <Icon name={folded ? "right" : "down"} />
      <span class="name">{plane.name || (state ? `plane ${plane.plane}` : <i>no name</i>)}</span>
      {state && <span class={`state ${state}`}>{state}</span>}
      <span class="count">{plane.events ? shortCount(plane.events) : state ? "" : "empty"}</span>
    </button>
  );
}

/** The last part of a plane's name: TPU:0. */
function shortPlane(name: string): string {
  return name.slice(name.indexOf(":") + 1) || name;
}

function lineTitle(row: Row): string {
  const line = row.line!;
  return [
    row.pinned ? `${row.plane.name} › ${line.name || "(no name)"}` : line.name || "(no name)",
    plural(line.events, "event"),
    line.lanes > 1 ? `${count(line.lanes)} rows, so that overlapping events do not hide each other` : "",
    line.derived ? `derived: ${line.how ?? "made from other lines"}` : "",
    line.odd ? `${plural(line.odd, "event")} with a negative or overflowing time` : "",
    line.overflow ? `${plural(line.overflow, "event")} overlap more than 255 others and share the last row` : "",
  ].filter(Boolean).join("\n");
}

function LineLabel({ trace, row, hits, top }: { trace: Trace; row: Row; hits: number; top: number }) {
  const line = row.line!;
  const flatten = line.lanes > 1;
  // Stays in sight as long as a part of the row does.
  const stick = Math.max(0, Math.min(top - row.y, row.h - labelHeight()));
  return (
    <div class={`line ${line.events ? "" : "void"}`} style={{ marginTop: `${stick}px` }} title={lineTitle(row)}>
      <span class="who">
        <span class={`name ${line.derived ? "derived" : ""}`}>{row.pinned && <small>{shortPlane(row.plane.name)} </small>}{line.name || <i>no name</i>}</span>
        {line.derived && <small class="tag">derived</small>}
      </span>
      {line.odd + line.overflow > 0 && <Icon name="warn" />}
      {hits > 0 && <span class="hits" title={`${plural(hits, "hit")} of the search`}>{shortCount(hits)}</span>}
      {flatten && (
        <button
          type="button"
          class="flatten"
          aria-pressed={row.flat}
          title={row.flat ? "Show at full height" : `Flatten ${line.lanes} rows`}
          onClick={() => trace.toggleFlat(line.line)}
        >
          <Icon name={row.flat ? "expand" : "flatten"} />
        </button>
      )}
      <span class="row-tools">
        {row.pinned && trace.pins.value[0] !== line.line && (
          <button type="button" class="flatten" title="Move up" aria-label={`Move ${line.name} up`} onClick={() => trace.raisePin(line.line)}><Icon name="up" /></button>
        )}
        {!line.derived && line.events > 0 && (
          <button type="button" class="flatten" title="Draw values of its events as curves" aria-label={`Curves of ${line.name}`} onClick={() => trace.offerCurves(line.line)}><Icon name="memory" /></button>
        )}
        <button
          type="button" class="flatten" aria-pressed={!!row.pinned} title={row.pinned ? "Unpin (P)" : "Pin above the others (P)"}
          aria-label={`${row.pinned ? "Unpin" : "Pin"} ${line.name}`} onClick={() => trace.togglePin(line.line)}
        >
          <Icon name="pin" />
        </button>
        <button type="button" class="flatten" title="Hide (H)" aria-label={`Hide ${line.name}`} onClick={() => trace.hideLine(line.line)}><Icon name="close" /></button>
      </span>
      <span class="count">{line.events ? shortCount(line.events) : "no events"}</span>
    </div>
  );
}

function CurveLabel({ trace, row }: { trace: Trace; row: Row }) {
  const { stat, series, name } = row.curve!;
  const line = row.line!.line;
  void trace.curves.version.value;
  const s = trace.curves.series(line, stat, series);
  const note = trace.curves.note(line, stat);
  return (
    <div class="line curve" title={[name || stat, s && `least ${plain(s.low)}, largest ${plain(s.high)} of what was in view so far`, note].filter(Boolean).join("\n")}>
      <span class="name">{name || stat}</span>
      {note && <Icon name="info" />}
      <span class="row-tools">
        <button type="button" class="flatten" title="Remove" aria-label={`Remove ${name || stat}`} onClick={() => trace.toggleCurve({ line, stat })}><Icon name="close" /></button>
      </span>
      {s && <span class="count"><span>{curveValue(stat, s.to)}</span><span>{curveValue(stat, s.from)}</span></span>}
    </div>
  );
}

export function Labels({ trace }: { trace: Trace }) {
  const rows = trace.inSight.value;
  const top = trace.scrollTop.value;
  const base = trace.base.value;
  // The group that the first row belongs to, once its heading is scrolled away.
  const above = rows[0]?.line ? rows[0].plane.name : "";
  const hits = new Map(trace.search.answer.value?.lines.map((l) => [l.line, l.count]));
  return (
    <div class="labels">
      <div class="corner">
        <span class="above">{above}</span>
        <span title={base ? "Labels with + count from here" : undefined}>{base || "session time"}</span>
      </div>
      <div class="label-rows" role="list" aria-label="Rows">
        {rows.map((row) => (
          <div
            key={row.line ? `${row.pinned ? "pinned" : "l"}${row.line.line}${row.curve ? ` ${row.curve.series} ${row.curve.stat}` : ""}` : `p${row.plane.plane}`}
            class={row.pinned ? "label pinned" : "label"}
            role="listitem"
            style={{ transform: `translateY(${row.y - top}px)`, height: `${row.h}px` }}
          >
            {row.curve ? <CurveLabel trace={trace} row={row} /> : row.line
              ? <LineLabel trace={trace} row={row} hits={hits.get(row.line.line) ?? 0} top={top} />
              : <Heading trace={trace} row={row} />}
          </div>
        ))}
        <MoreRows trace={trace} y={trace.rows.value.height - top} />
      </div>
    </div>
  );
}
