// Chips where they sit, coloured by what they did; who sends to whom as arrows between them.
import { useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import { px as len } from "../layout/unit";
import type { Chip, Edge, Plane } from "../model/torus";
import { MEASURES } from "../model/torus";
import { dark } from "../model/theme";
import { show } from "../model/units";
import { useWidth } from "../widgets/size";
import { rgbOf } from "./heat";

const GAP = 18; // between planes
const headRoom = (): number => len(22); // above a plane
const DRAWN = 1500; // arrows

interface Box {
  x: number;
  y: number;
  w: number;
  h: number;
}

/** Where everything is drawn: planes beside each other, wrapped. */
function place(chips: readonly Chip[], planes: readonly Plane[], width: number): { boxes: Box[]; heads: { x: number; y: number; plane: Plane }[]; height: number; cell: number } {
  const widest = Math.max(1, ...planes.map((p) => p.columns));
  const tallest = Math.max(1, ...planes.map((p) => p.rows));
  const cell = Math.max(4, Math.min(len(72), Math.floor((width - GAP) / widest), Math.floor(len(planes.length > 1 ? 280 : 420) / tallest)));
  const boxes: Box[] = new Array<Box>(chips.length);
  const heads: { x: number; y: number; plane: Plane }[] = [];
  const named = planes.length > 1;
  let x = 0;
  let y = 0;
  let row = 0;
  for (const p of planes) {
    const w = p.columns * cell;
    const h = p.rows * cell + (named ? headRoom() : 0);
    if (x > 0 && x + w > width) {
      x = 0;
      y += row + GAP;
      row = 0;
    }
    if (named) heads.push({ x, y, plane: p });
    const inside = Math.max(2, cell - (cell > 14 ? 6 : 1));
    for (const i of p.chips) {
      const c = chips[i]!;
      const part = Math.min(c.part, p.parts - 1);
      boxes[i] = { x: x + p.column.get(c.x)! * cell + (cell - inside) / 2 + (part * inside) / p.parts, y: y + (named ? headRoom() : 0) + p.row.get(c.y)! * cell + (cell - inside) / 2, w: inside / p.parts - (p.parts > 1 ? 1 : 0), h: inside };
    }
    row = Math.max(row, h);
    x += w + GAP;
  }
  return { boxes, heads, height: y + row, cell };
}

const middle = (b: Box): [number, number] => [b.x + b.w / 2, b.y + b.h / 2];

/** From the edge of one to the edge of the other, bowed so that there and back are two. */
function arrow(a: Box, b: Box): { line: string; head: string } {
  const [x1, y1] = middle(a);
  const [x2, y2] = middle(b);
  const far = Math.hypot(x2 - x1, y2 - y1) || 1;
  const [ux, uy] = [(x2 - x1) / far, (y2 - y1) / far];
  const bow = Math.min(28, far * 0.16);
  const [cx, cy] = [(x1 + x2) / 2 - uy * bow, (y1 + y2) / 2 + ux * bow];
  const stop = Math.min(b.w, b.h) * 0.3;
  const out = Math.hypot(x2 - cx, y2 - cy) || 1;
  const [vx, vy] = [(x2 - cx) / out, (y2 - cy) / out];
  const [ex, ey] = [x2 - vx * stop, y2 - vy * stop];
  const size = Math.max(3, Math.min(7, Math.min(b.w, b.h) * 0.3));
  const n = (v: number): string => v.toFixed(1);
  return {
    line: `M${n(x1)} ${n(y1)}Q${n(cx)} ${n(cy)} ${n(ex)} ${n(ey)}`,
    head: `M${n(ex)} ${n(ey)}L${n(ex - vx * size - vy * size * 0.6)} ${n(ey - vy * size + vx * size * 0.6)}L${n(ex - vx * size + vy * size * 0.6)} ${n(ey - vy * size - vx * size * 0.6)}Z`,
  };
}

export function TorusMap({ chips, planes, measure, edges, title, slices, onOpen }: {
  chips: readonly Chip[]; planes: readonly Plane[]; measure: number; edges: readonly Edge[]; title: string; slices: boolean; onOpen: (c: Chip) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box, 640);
  const at = useSignal(-1);
  const isDark = dark.value;
  const { boxes, heads, height, cell } = useMemo(() => place(chips, planes, Math.max(120, width.value - 4)), [chips, planes, width.value]);
  const values = chips.map((c) => c.values[measure]!);
  const known = values.filter((v) => !Number.isNaN(v));
  const low = Math.min(...known);
  const high = Math.max(...known);
  const label = MEASURES[measure]![1];
  const drawn = edges.slice(0, DRAWN);
  const [fast, slow] = [Math.min(...drawn.map((e) => e.latency)), Math.max(...drawn.map((e) => e.latency))];
  const paths = useMemo(() => drawn.map((e) => arrow(boxes[e.from]!, boxes[e.to]!)), [edges, boxes]);
  // Differences of less than 2 % are none to be coloured like large ones.
  const reach = Math.max(high - low, Math.abs(high) * 0.02);
  const fill = (v: number): string => `rgb(${rgbOf(reach > 0 ? (v - low) / reach : 0, isDark, false).join(" ")})`;
  /** The nearest chip in that direction, on the picture. */
  const step = (dx: number, dy: number): void => {
    const now = boxes[at.peek()];
    if (!now) return void (at.value = 0);
    let best = -1;
    let least = Infinity;
    boxes.forEach((b, i) => {
      const along = (b.x - now.x) * dx + (b.y - now.y) * dy;
      const aside = Math.abs((b.x - now.x) * dy) + Math.abs((b.y - now.y) * dx);
      if (along > 0.5 && along + 3 * aside < least) [best, least] = [i, along + 3 * aside];
    });
    if (best >= 0) at.value = best;
  };
  const keys = (e: KeyboardEvent): void => {
    const move: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const d = move[e.key];
    if (d) step(...d);
    else if (e.key === "Enter" && chips[at.peek()]) onOpen(chips[at.peek()]!);
    else if (e.key === "Escape" && at.peek() >= 0) at.value = -1;
    else return;
    e.preventDefault();
  };
  const here = chips[at.value];
  const spot = boxes[at.value];
  const own = drawn.filter((e) => e.to === at.value || e.from === at.value);
  const words = `${title}: ${chips.length} cores, ${label} ${known.length ? `from ${show(low, "ps")} to ${show(high, "ps")}` : "not known"}. Arrow keys go from chip to chip, Enter ${chips.some((c) => c.begin !== null) ? "opens the timeline" : "shows the host alone"}; the table Chips says the same.`;
  return (
    <figure class="chart torus" aria-label={title}>
      <div class="legend-row">
        {known.length > 0 && (
          <span class="heat-scale">
            {show(low, "ps")}
            <svg width="120" height="10" aria-hidden="true">
              {Array.from({ length: 24 }, (_, i) => <rect key={i} x={i * 5} y={0} width={5} height={10} fill={`rgb(${rgbOf(i / 23, isDark, false).join(" ")})`} />)}
            </svg>
            {show(low + reach, "ps")}
          </span>
        )}
        {drawn.length > 0 && <span class="torus-key"><svg width="26" height="10" aria-hidden="true"><path class="torus-edge" d="M1 5h18" stroke-width="2" /><path class="torus-head" d="M25 5l-7-4v8z" /></svg> sends to; the thicker the slower: {show(fast, "ps")} to {show(slow, "ps")}{edges.length > drawn.length && `; ${drawn.length} of ${edges.length} are drawn`}</span>}
      </div>
      <div ref={box} class="plot torus-plot" tabIndex={0} role="img" aria-label={words} onKeyDown={keys} onPointerLeave={() => (at.value = -1)}>
        <svg width={Math.max(width.value, ...boxes.map((b) => b.x + b.w + 2))} height={height + 4} aria-hidden="true">
          {heads.map((h) => (
            <text key={`${h.plane.slice} ${h.plane.z}`} class="axis" x={h.x + 2} y={h.y + len(14)}>
              {[slices && `slice ${h.plane.slice}`, heads.some((o) => o.plane.z > 0) && `z ${h.plane.z}`].filter(Boolean).join(", ")}
            </text>
          ))}
          {chips.map((c, i) => {
            const b = boxes[i]!;
            const v = values[i]!;
            return (
              <g key={i} onPointerMove={() => (at.value = i)} onClick={() => onOpen(c)}>
                <rect class={Number.isNaN(v) ? "torus-chip none" : "torus-chip"} x={b.x} y={b.y} width={b.w} height={b.h} rx={cell > 20 ? 4 : 0} fill={Number.isNaN(v) ? "none" : fill(v)} />
              </g>
            );
          })}
          {paths.map((p, i) => {
            const e = drawn[i]!;
            const share = slow > fast ? (e.latency - fast) / (slow - fast) : 0.4;
            const lit = at.value < 0 || e.to === at.value || e.from === at.value;
            return (
              <g key={`e${i}`} class={lit ? "torus-arrow" : "torus-arrow dim"}>
                <path class="torus-halo" d={p.line} stroke-width={4 + 2.2 * share} />
                <path class="torus-edge" d={p.line} stroke-width={1 + 2.2 * share} />
                <path class="torus-head" d={p.head} />
              </g>
            );
          })}
          {cell >= len(24) && chips.map((c, i) => (
            <text key={`t${i}`} class="torus-name" x={middle(boxes[i]!)[0]} y={middle(boxes[i]!)[1] + len(4)} text-anchor="middle">{Number.isNaN(c.id) ? c.x : c.id}</text>
          ))}
          {spot && <rect class="heat-cursor" x={spot.x - 1} y={spot.y - 1} width={spot.w + 2} height={spot.h + 2} />}
        </svg>
        {here && spot && (
          <div class="chart-tip" role="status" style={{ ...(spot.x > width.value / 2 ? { right: `${Math.max(4, width.value - spot.x + 10)}px` } : { left: `${spot.x + spot.w + 12}px` }), top: `${Math.max(0, Math.min(height - 120, spot.y))}px` }}>
            <b>{here.host} {here.core.replace(/^\/device:/, "")}</b>
            <dl>
              {!Number.isNaN(here.chip) && <div><dt>chip {here.chip}{slices && `, slice ${here.slice}`}</dt><dd>({here.x}, {here.y}, {here.z})</dd></div>}
              {MEASURES.map(([, name], k) => <div key={name} class={k === measure ? "now" : ""}><dt>{name}</dt><dd>{show(here.values[k], "ps")}</dd></div>)}
              {own.slice(0, 4).map((e, k) => (
                <div key={`o${k}`}><dt>{e.to === at.value ? `gets from ${nameOf(chips[e.from]!)}` : `sends to ${nameOf(chips[e.to]!)}`}</dt><dd>{show(e.latency, "ps")}</dd></div>
              ))}
            </dl>
          </div>
        )}
      </div>
    </figure>
  );
}

const nameOf = (c: Chip): string => (Number.isNaN(c.id) ? c.core : String(c.id));
