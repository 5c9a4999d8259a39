// A heat map: rows by columns, on a canvas, so that hundreds of hosts and thousands of steps stay one picture.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { px as len, unit } from "../layout/unit";
import type { Cell, Series } from "../api/report";
import { dark } from "../model/theme";
import { matrixOf, rowOrder, type Order } from "../model/matrix";
import { show } from "../model/units";
import { useWidth } from "../widgets/size";
import { SpanBand, useSpan } from "./span";
import { shorten } from "./xy";

const labelsWidth = (): number => len(150);
const topRoom = (): number => len(22);
const letterWidth = (): number => 6.2 * unit(); // px
const mostRow = (): number => len(26);
const MIN_ROW = 3;

/** From pale to strong in one hue; in the dark theme from dim to bright. Where there are values below
    0: orange for these, blue for those above, so that nobody has to tell red from green. */
export function rgbOf(share: number, isDark: boolean, signed: boolean): [number, number, number] {
  const stops: [number, number, number][] = signed
    ? isDark
      ? [[255, 178, 92], [150, 92, 40], [32, 40, 56], [48, 92, 160], [128, 184, 255]]
      : [[156, 74, 0], [244, 176, 108], [244, 245, 248], [140, 178, 236], [20, 74, 168]]
    : isDark
    ? [[32, 40, 56], [52, 84, 150], [104, 150, 232], [255, 214, 130]]
    : [[236, 241, 250], [160, 190, 240], [66, 110, 205], [128, 28, 60]];
  const x = Math.min(0.9999, Math.max(0, share)) * (stops.length - 1);
  const i = Math.floor(x);
  const f = x - i;
  return stops[i]!.map((v, k) => Math.round(v + (stops[i + 1]![k]! - v) * f)) as [number, number, number];
}

export function HeatMap({ s, onRow, onSpan, first = "name" }: {
  s: Series; first?: Order; onRow?: (name: string) => void; onSpan?: (a: Cell | undefined, b: Cell | undefined) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(box, 640);
  const order = useSignal<Order>(first);
  const at = useSignal<{ row: number; column: number } | null>(null);
  const m = useMemo(() => matrixOf(s), [s]);
  const signed = m.low < 0;
  const [low, high] = signed ? [-Math.max(-m.low, m.high), Math.max(-m.low, m.high)] : [m.low, m.high];
  const rows = useMemo(() => rowOrder(m, s.names, order.value), [m, order.value]);
  const row = Math.max(MIN_ROW, Math.min(mostRow(), Math.floor(len(520) / Math.max(1, m.rows))));
  const inner = Math.max(40, width.value - labelsWidth() - 8);
  const height = row * m.rows;
  const isDark = dark.value;

  useEffect(() => {
    const c = canvas.current;
    if (!c || m.rows === 0 || m.columns === 0) return;
    const dpr = window.devicePixelRatio || 1;
    c.width = Math.round(inner * dpr);
    c.height = Math.round(height * dpr);
    const g = c.getContext("2d")!;
    g.scale(dpr, dpr);
    g.clearRect(0, 0, inner, height);
    const slot = inner / m.columns;
    const gapX = slot > 5 ? 1 : 0;
    const gapY = row > 5 ? 1 : 0;
    rows.forEach((r, k) => {
      for (let x = 0; x < m.columns; x++) {
        const v = m.values[r * m.columns + x]!;
        if (Number.isNaN(v)) continue;
        const [red, green, blue] = rgbOf(high > low ? (v - low) / (high - low) : 0.5, isDark, signed);
        g.fillStyle = `rgb(${red} ${green} ${blue})`;
        g.fillRect(x * slot, k * row, Math.max(1, slot - gapX), row - gapY);
      }
    });
  }, [m, rows, inner, height, isDark]);

  const find = (e: PointerEvent): void => {
    const r = canvas.current!.getBoundingClientRect();
    const column = Math.floor(((e.clientX - r.left) / r.width) * m.columns);
    const line = Math.floor((e.clientY - r.top) / row);
    at.value = column >= 0 && column < m.columns && line >= 0 && line < m.rows ? { row: line, column } : null;
  };
  const span = useSpan(onSpan && ((a, b) => onSpan(s.points[a]?.[0], s.points[b]?.[0])));
  const keys = (e: KeyboardEvent): void => {
    if (span.key(e, at.peek()?.column ?? -1)) e.preventDefault();
    const move: Record<string, [number, number]> = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const d = move[e.key];
    if (!d) return;
    e.preventDefault();
    const now = at.peek() ?? { row: 0, column: 0 };
    at.value = {
      row: Math.min(m.rows - 1, Math.max(0, now.row + d[0])), column: Math.min(m.columns - 1, Math.max(0, now.column + d[1])),
    };
    span.extend(at.peek()!.column);
  };
  if (m.rows === 0 || m.columns === 0) return <p class="none">No values.</p>;
  const every = Math.max(1, Math.ceil(len(14) / row));
  const here = at.value;
  const name = here ? s.names[rows[here.row]!]! : "";
  const value = here ? m.values[rows[here.row]! * m.columns + here.column]! : NaN;
  const longest = s.points.reduce((n, p) => Math.max(n, show(p[0], s.x.unit).length), 0);
  const ticks = Math.max(1, Math.ceil(m.columns / Math.max(1, Math.floor(inner / Math.max(len(56), longest * letterWidth() + 12)))));
  return (
    <figure class="chart heat" aria-label={s.title}>
      <div class="legend-row">
        <span class="heat-scale">
          {show(low, s.y.unit)}
          <svg width="120" height="10" aria-hidden="true">
            {Array.from({ length: 24 }, (_, i) => <rect key={i} x={i * 5} y={0} width={5} height={10} fill={`rgb(${rgbOf(i / 23, isDark, signed).join(" ")})`} />)}
          </svg>
          {show(high, s.y.unit)}
        </span>
        <label class="row">Order
          <select value={order.value} onChange={(e) => (order.value = e.currentTarget.value as Order)}>
            <option value="name">by name</option>
            <option value="late">{s.y.unit === "ps" ? "slowest first" : "most first"}</option>
          </select>
        </label>
      </div>
      <div
        ref={box} class="plot heat-plot" tabIndex={0} role="img" onKeyDown={keys} style={{ height: `${height + topRoom() + 4}px` }}
        aria-label={`${s.title}: ${m.rows} rows, ${m.columns} columns, ${s.y.label} from ${show(m.low, s.y.unit)} to ${show(m.high, s.y.unit)}. Arrow keys go through it.${onSpan ? " With Shift they choose columns, Enter takes them." : ""}`}
      >
        <svg width={width.value} height={height + topRoom()} aria-hidden="true">
          {rows.map((r, k) => k % every === 0 && (
            <text key={r} class="tick" x={labelsWidth() - len(8)} y={topRoom() + k * row + row / 2 + len(4)} text-anchor="end">{shorten(s.names[r]!, 22)}</text>
          ))}
          {s.points.map((p, i) => i % ticks === 0 && (
            <text key={i} class="tick" x={labelsWidth() + (i + 0.5) * (inner / m.columns)} y={len(14)} text-anchor="middle">{show(p[0], s.x.unit)}</text>
          ))}
          {span.from.value >= 0 && span.to.value >= 0 && (
            <SpanBand a={labelsWidth() + (span.from.value + 0.5) * (inner / m.columns)} b={labelsWidth() + (span.to.value + 0.5) * (inner / m.columns)} pad={inner / m.columns / 2} top={topRoom()} tall={height} />
          )}
          {here && <rect class="heat-cursor" x={labelsWidth() + here.column * (inner / m.columns)} y={topRoom() + here.row * row} width={inner / m.columns} height={row} />}
        </svg>
        <canvas
          ref={canvas} style={{ left: `${labelsWidth()}px`, top: `${topRoom()}px`, width: `${inner}px`, height: `${height}px` }}
          onPointerDown={(e) => (find(e), span.down(e, at.peek()?.column ?? -1))}
          onPointerMove={(e) => (find(e), span.extend(at.peek()?.column ?? -1))} onPointerLeave={() => (at.value = null)}
          onPointerUp={() => span.up()} onPointerCancel={() => span.cancel()} onClick={() => name && !span.took() && onRow?.(name)}
        />
        {here && (
          <div class="chart-tip" role="status" style={{
            ...(here.column > m.columns * 0.6 ? { right: `${inner - (here.column / m.columns) * inner + 16}px` } : { left: `${labelsWidth() + ((here.column + 1) / m.columns) * inner + 12}px` }),
            top: `${Math.min(height - 20, topRoom() + here.row * row)}px`,
          }}>
            <b>{name}</b>
            <dl>
              <div><dt>{s.x.label}</dt><dd>{show(s.points[here.column]![0], s.x.unit)}</dd></div>
              <div><dt>{s.y.label}</dt><dd>{Number.isNaN(value) ? "n/a" : show(value, s.y.unit)}</dd></div>
              <div><dt>mean of the row</dt><dd>{show(m.means[rows[here.row]!]!, s.y.unit)}</dd></div>
            </dl>
          </div>
        )}
      </div>
    </figure>
  );
}
