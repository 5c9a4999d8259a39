// Stacked bars, bars and lines of a report's series, as SVG.
import { useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import { px as len, unit } from "../layout/unit";
import type { Cell, Series } from "../api/report";
import type { Mark } from "../model/latencies";
import { asNumber, exact, show } from "../model/units";
import { useWidth } from "../widgets/size";
import { seriesColours } from "./colours";
import { linearAxis, thin } from "./scale";
import { SpanBand, useSpan } from "./span";

const leftRoom = (): number => len(62);
const rightRoom = (): number => len(12);
const topRoom = (): number => len(10);
const bottomRoom = (): number => len(40);
const usualHeight = (): number => len(250);
const MANY = 240; // bars; beyond these they become an area

/** Where it is among bars of equal width that begin at each point's x; null: it is beside them. */
export function markAt(points: readonly (readonly Cell[])[], at: number): number | null {
  const x0 = asNumber(points[0]?.[0]);
  const wide = points.length > 1 ? asNumber(points[1]![0]) - x0 : NaN;
  const place = (at - x0) / wide;
  return place >= 0 && place <= points.length ? place : null;
}

/** What a click chooses: a place on the axis, or one of the points. */
export interface Pick {
  at: number | null; // chosen
  take?: (x: number) => void;
  point?: (i: number) => void;
  word: string; // what a click shows
}

export function XyChart({ s, href, onSpan, pick, marks = [], height = usualHeight() }: {
  s: Series; href?: (point: readonly Cell[]) => string; onSpan?: (a: Cell | undefined, b: Cell | undefined) => void; marks?: readonly Mark[]; pick?: Pick | undefined; height?: number;
}) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box, 640);
  const at = useSignal(-1);
  const off = useSignal<ReadonlySet<number>>(useMemo(() => new Set(overwhelming(s)), []));
  const colours = useMemo(() => seriesColours(s.names), [s]);
  const on = s.names.map((_, i) => i).filter((i) => !off.value.has(i));
  const points = s.points;
  const inner = Math.max(40, width.value - leftRoom() - rightRoom());
  const tall = height - topRoom() - bottomRoom();
  const line = s.kind === "line";
  const timed = s.kind === "stack" && s.x.unit !== ""; // a place on an axis, not one of many bars
  const numericX = (line || timed) && s.x.type === "number" && points.length > 1;

  const { low, high } = useMemo(() => extremes(points, on, s.kind), [s, off.value]);
  const y = linearAxis(low, high, s.y.unit);
  const sy = (v: number): number => topRoom() + tall - ((v - y.min) / (y.max - y.min)) * tall;
  const x0 = numericX ? asNumber(points[0]![0]) : 0;
  const x1 = numericX ? asNumber(points[points.length - 1]![0]) : 0;
  const xAxis = numericX ? linearAxis(x0, x1, s.x.unit, Math.max(2, Math.floor(inner / len(110)))) : null;
  const slot = inner / Math.max(1, points.length);
  const sx = (i: number): number =>
    numericX ? leftRoom() + ((asNumber(points[i]![0]) - x0) / Math.max(x1 - x0, 1e-300)) * inner : leftRoom() + (i + 0.5) * slot;

  const nearest = (clientX: number): number => {
    const px = clientX - box.current!.getBoundingClientRect().left;
    if (!numericX) return Math.min(points.length - 1, Math.max(0, Math.floor((px - leftRoom()) / slot)));
    let best = 0;
    for (let i = 1; i < points.length; i++) if (Math.abs(sx(i) - px) < Math.abs(sx(best) - px)) best = i;
    return best;
  };
  const span = useSpan(onSpan && ((a, b) => onSpan(points[a]?.[0], points[b]?.[0])));
  const keys = (e: KeyboardEvent): void => {
    const step = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
    if (span.key(e, at.peek())) e.preventDefault();
    if (step) {
      e.preventDefault();
      at.value = Math.min(points.length - 1, Math.max(0, at.peek() + step));
      span.extend(at.peek());
    } else if (e.key === "Escape") at.value = -1;
    else if (e.key === "Enter" && !e.defaultPrevented && at.peek() >= 0 && href) open(points[at.peek()]!);
    else if (e.key === "Enter" && at.peek() >= 0 && numericX) pick?.take?.(asNumber(points[at.peek()]![0]));
    else if (e.key === "Enter" && at.peek() >= 0) pick?.point?.(at.peek());
  };
  const placeOf = (v: number): number => leftRoom() + ((v - x0) / Math.max(x1 - x0, 1e-300)) * inner;
  const takeAt = (clientX: number): void => {
    const px = clientX - box.current!.getBoundingClientRect().left - leftRoom();
    pick?.take?.(Math.round(x0 + Math.min(1, Math.max(0, px / inner)) * (x1 - x0)));
  };
  const open = (point: readonly Cell[]): void => {
    const to = href?.(point);
    if (to) document.querySelector<HTMLAnchorElement>(`#${anchorId(s)}`)?.click();
  };
  const label = (i: number): string => show(points[i]![0], s.x.unit);
  const here = at.value >= 0 && at.value < points.length ? points[at.value]! : null;
  const every = numericX ? 1 : thin(points.length, inner, longestLabel(points, s) * 7 * unit() + 14);
  return (
    <figure class="chart" aria-label={s.title}>
      <Legend s={s} colours={colours} off={off.value} flip={(i) => (off.value = flipped(off.peek(), i))} />
      <div
        ref={box} class="plot" tabIndex={0} role="img" onKeyDown={keys}
        aria-label={`${s.title}: ${points.length} points, ${s.y.label} from ${show(low, s.y.unit)} to ${show(high, s.y.unit)}. Arrow keys go through them.${pick ? ` Enter: ${pick.word}.` : ""}${onSpan ? " With Shift they choose several, Enter takes them." : ""}`}
        onPointerDown={(e) => span.down(e, nearest(e.clientX))}
        onPointerMove={(e) => span.extend((at.value = nearest(e.clientX)))} onPointerLeave={() => (at.value = -1)}
        onPointerUp={() => span.up()} onPointerCancel={() => span.cancel()}
        onClick={(e) => (pick?.take && numericX ? takeAt(e.clientX) : pick?.point && points.length > 0 ? pick.point(nearest(e.clientX)) : here && !span.took() && open(here))}
      >
        <svg width={width.value} height={height} aria-hidden="true">
          {y.ticks.map((t) => (
            <g key={t.at}>
              <line class="grid" x1={leftRoom()} x2={leftRoom() + inner} y1={sy(t.at)} y2={sy(t.at)} />
              <text class="tick" x={leftRoom() - len(8)} y={sy(t.at) + len(4)} text-anchor="end">{t.text}</text>
            </g>
          ))}
          <text class="axis" x={leftRoom()} y={height - len(4)}>{`${s.y.label}${y.title ? `, ${y.title}` : ""}`}</text>
          <text class="axis" x={leftRoom() + inner} y={height - len(4)} text-anchor="end">{`${s.x.label}${xAxis?.title ? `, ${xAxis.title}` : ""}`}</text>
          {line
            ? on.map((i) => <path key={i} class="curve" d={curve(points, i, sx, sy)} stroke={colours[i]} />)
            : timed && numericX
              ? areas(points, on, (k) => [sx(k), k + 1 < points.length ? sx(k + 1) : sx(k) + 1], sy).map((d, k) => <path key={on[k]} d={d} fill={colours[on[k]!]} />)
              : <Bars points={points} on={on} colours={colours} sx={sx} sy={sy} slot={slot} stack={s.kind === "stack"} right={leftRoom() + inner} />}
          {line && points.length < 60 && on.map((i) => points.map((p, k) => !Number.isNaN(asNumber(p[i + 1])) && <circle key={`${i},${k}`} class="dot" cx={sx(k)} cy={sy(asNumber(p[i + 1]))} r={2.5} fill={colours[i]} />))}
          {xAxis
            ? xAxis.ticks.filter((t) => t.at >= x0 && t.at <= x1).map((t) => (
              <text key={t.at} class="tick" x={leftRoom() + ((t.at - x0) / Math.max(x1 - x0, 1e-300)) * inner} y={topRoom() + tall + len(16)} text-anchor="middle">{t.text}</text>
            ))
            : points.map((_, i) => i % every === 0 && <text key={i} class="tick" x={sx(i)} y={topRoom() + tall + len(16)} text-anchor="middle">{shorten(label(i), 22)}</text>)}
          <line class="base" x1={leftRoom()} x2={leftRoom() + inner} y1={sy(Math.max(0, y.min))} y2={sy(Math.max(0, y.min))} />
          {pick && pick.at !== null && numericX && pick.at >= x0 && pick.at <= x1 && <line class="picked-line" x1={placeOf(pick.at)} x2={placeOf(pick.at)} y1={topRoom()} y2={topRoom() + tall} />}
          {marks.map((m, i) => {
            const place = markAt(points, m.at);
            return place !== null && (
              <g key={m.label} class="mark">
                <line x1={leftRoom() + place * slot} x2={leftRoom() + place * slot} y1={topRoom()} y2={topRoom() + tall} />
                <text x={leftRoom() + place * slot + (place > points.length * 0.8 ? -4 : 4)} y={topRoom() + len(11) + i * len(13)} text-anchor={place > points.length * 0.8 ? "end" : "start"}>{m.label}</text>
              </g>
            );
          })}
          {span.from.value >= 0 && span.to.value >= 0 && <SpanBand a={sx(span.from.value)} b={sx(span.to.value)} pad={numericX ? 0 : slot / 2} top={topRoom()} tall={tall} />}
          {here && <line class="cursor-line" x1={sx(at.value)} x2={sx(at.value)} y1={topRoom()} y2={topRoom() + tall} />}
        </svg>
        {here && <Tip s={s} point={here} on={on} colours={colours} x={sx(at.value)} width={width.value} href={Boolean(href?.(here))} span={Boolean(onSpan)} word={pick && (numericX || pick.point) ? pick.word : ""} />}
      </div>
      {here && href?.(here) && <a id={anchorId(s)} class="unseen" tabIndex={-1} href={href(here)}>Show it in the timeline</a>}
    </figure>
  );
}

/** Free memory may be so much more than what is used that nothing of that is seen: away at first. */
function overwhelming(s: Series): number[] {
  const free = s.names.indexOf("free");
  if (s.kind !== "stack" || free < 0) return [];
  let used = 0;
  let most = 0;
  for (const p of s.points) {
    most = Math.max(most, asNumber(p[free + 1]) || 0);
    used = Math.max(used, s.names.reduce((a, _, i) => a + (i === free ? 0 : asNumber(p[i + 1]) || 0), 0));
  }
  return used > 0 && used < most / 3 ? [free] : [];
}

const anchorId = (s: Series): string => `chart-${s.id.replace(/\W/g, "_")}-go`;

function flipped(set: ReadonlySet<number>, i: number): Set<number> {
  const next = new Set(set);
  if (!next.delete(i)) next.add(i);
  return next;
}

export function shorten(text: string, n: number): string {
  return text.length > n ? `${text.slice(0, n - 1)}…` : text;
}

function longestLabel(points: readonly (readonly Cell[])[], s: Series): number {
  let n = 1;
  for (const p of points) n = Math.max(n, Math.min(22, show(p[0], s.x.unit).length));
  return n;
}

function extremes(points: readonly (readonly Cell[])[], on: readonly number[], kind: Series["kind"]): { low: number; high: number } {
  let low = kind === "line" ? Infinity : 0;
  let high = -Infinity;
  for (const p of points) {
    let total = 0;
    for (const i of on) {
      const v = asNumber(p[i + 1]);
      if (Number.isNaN(v)) continue;
      if (kind === "stack") total += v;
      else {
        low = Math.min(low, v);
        high = Math.max(high, v);
      }
    }
    if (kind === "stack") high = Math.max(high, total);
  }
  if (!Number.isFinite(high)) high = 1;
  if (!Number.isFinite(low)) low = 0;
  if (kind === "line" && low > 0 && low < high * 0.7) low = 0; // from zero, unless that would flatten it
  return { low, high };
}

function curve(points: readonly (readonly Cell[])[], i: number, sx: (k: number) => number, sy: (v: number) => number): string {
  let d = "";
  let pen = "M";
  points.forEach((p, k) => {
    const v = asNumber(p[i + 1]);
    if (Number.isNaN(v)) {
      pen = "M"; // a gap stays a gap
      return;
    }
    d += `${pen}${sx(k).toFixed(1)} ${sy(v).toFixed(1)}`;
    pen = "L";
  });
  return d;
}

function Bars({ points, on, colours, sx, sy, slot, stack, right }: {
  points: readonly (readonly Cell[])[]; on: readonly number[]; colours: readonly string[]; right: number;
  sx: (k: number) => number; sy: (v: number) => number; slot: number; stack: boolean;
}) {
  const slotOf = (k: number): [number, number] => [sx(k) - slot / 2, Math.min(right, sx(k) + slot / 2)];
  if (stack && points.length > MANY) return <>{areas(points, on, slotOf, sy).map((d, k) => <path key={on[k]} d={d} fill={colours[on[k]!]} />)}</>;
  const gap = slot > 6 ? Math.min(10, slot * 0.22) : slot > 2.5 ? 1 : 0;
  const group = stack ? slot - gap : Math.min(46, (slot - gap) / Math.max(1, on.length));
  const wide = stack ? Math.min(64, group) : group;
  const rects = [];
  for (let k = 0; k < points.length; k++) {
    let base = 0;
    for (let n = 0; n < on.length; n++) {
      const v = asNumber(points[k]![on[n]! + 1]);
      if (Number.isNaN(v) || v === 0) continue;
      const from = stack ? base : Math.min(0, v);
      const to = stack ? base + v : Math.max(0, v);
      base = to;
      const x = stack ? sx(k) - wide / 2 : sx(k) - (wide * on.length) / 2 + n * wide;
      rects.push(<rect key={`${k},${n}`} x={x} y={sy(to)} width={Math.max(0.5, wide)} height={Math.max(0.4, sy(from) - sy(to))} fill={colours[on[n]!]} />);
    }
  }
  return <>{rects}</>;
}

/** Thousands of steps: one stepped area a name instead of a rectangle each. */
function areas(
  points: readonly (readonly Cell[])[], on: readonly number[], span: (k: number) => [from: number, to: number], sy: (v: number) => number,
): string[] {
  const base = new Float64Array(points.length);
  return on.map((i) => {
    let up = "";
    let down = "";
    for (let k = 0; k < points.length; k++) {
      const v = asNumber(points[k]![i + 1]);
      const low = base[k]!;
      base[k] = low + (Number.isNaN(v) ? 0 : v);
      const [x, end] = span(k);
      up += `${up ? "L" : "M"}${x.toFixed(2)} ${sy(base[k]!).toFixed(2)}L${end.toFixed(2)} ${sy(base[k]!).toFixed(2)}`;
      down = `L${end.toFixed(2)} ${sy(low).toFixed(2)}L${x.toFixed(2)} ${sy(low).toFixed(2)}${down}`;
    }
    return `${up}${down}Z`;
  });
}

function Legend({ s, colours, off, flip }: { s: Series; colours: readonly string[]; off: ReadonlySet<number>; flip: (i: number) => void }) {
  if (s.names.length < 2) return null;
  return (
    <div class="legend-row" role="group" aria-label={`Shown in ${s.title}`}>
      {s.names.map((name, i) => (
        <button key={i} type="button" class="legend-item" aria-pressed={!off.has(i)} onClick={() => flip(i)} title={off.has(i) ? `Show ${name}` : `Hide ${name}`}>
          <i class="swatch" style={{ background: colours[i] }} /> {name.replaceAll("_", " ")}
        </button>
      ))}
    </div>
  );
}

function Tip({ s, point, on, colours, x, width, href, span, word }: {
  s: Series; point: readonly Cell[]; on: readonly number[]; colours: readonly string[]; x: number; width: number; href: boolean; span: boolean; word: string;
}) {
  const left = x > width * 0.6;
  const values = on.map((i) => ({ i, v: point[i + 1] })).filter(({ v }) => s.kind !== "stack" || asNumber(v) !== 0);
  const sum = s.kind === "stack" && on.length > 1 ? on.reduce((a, i) => a + (asNumber(point[i + 1]) || 0), 0) : null;
  return (
    <div class="chart-tip" role="status" style={left ? { right: `${width - x + 12}px` } : { left: `${x + 12}px` }}>
      <b>{s.x.label} {show(point[0], s.x.unit)}</b>
      <dl>
        {values.map(({ i, v }) => (
          <div key={i}>
            <dt><i class="swatch" style={{ background: colours[i] }} /> {s.names[i]!.replaceAll("_", " ")}</dt>
            <dd title={exact(v, s.y.unit)}>{show(v, s.y.unit)}</dd>
          </div>
        ))}
        {sum !== null && <div class="sum"><dt>Together</dt><dd>{show(sum, s.y.unit)}</dd></div>}
      </dl>
      {href && <p class="ago">Click: show it in the timeline</p>}
      {word && <p class="ago">Click: {word}</p>}
      {span && <p class="ago">Drag: all pages for these steps only</p>}
    </div>
  );
}
