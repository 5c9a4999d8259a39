// A scatter plot on log axes; with roofs it is the roofline. The area of a dot is its weight.
import { useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import { px as len, unit } from "../layout/unit";
import type { Area } from "../model/hardware";
import { fewer, type Point } from "../model/lasso";
import { number, show } from "../model/units";
import { useWidth } from "../widgets/size";
import { logAxis } from "./scale";
import { shorten } from "./xy";

const leftRoom = (): number => len(86);
const rightRoom = (): number => len(28);
const topRoom = (): number => len(14);
const bottomRoom = (): number => len(44);

export interface Dot {
  key: string;
  name: string;
  x: number;
  y: number;
  weight: number; // 0 … 1
  group: string;
  facts: [string, string][];
  dim?: boolean; // not what is looked for
}

/** What is no dot among the others but a sum of them: its sign says which. */
export interface Mark extends Dot {
  sign: "total" | "hardware" | "average" | "step";
}

export const SIGNS: Record<Mark["sign"], string> = {
  total: "m0-8l8 8l-8 8l-8-8z", hardware: "m0-8l8 8l-8 8l-8-8z", average: "m-6-6h12v12h-12z", step: "m0-4.5l4.5 4.5l-4.5 4.5l-4.5-4.5z",
};

export interface Roof {
  name: string;
  peak: number; // y of the flat part
  slope: number; // y per x of the part before it; 0: flat only
}

const DRAWN = 2000; // points of a line while it is drawn
const LEAST = 6; // px; a shorter drag is a click

export function Scatter({ dots, roofs, x, y, groups, colours, chosen, onChoose, onArea, onLasso, lasso = null, wholes = [], title, height = 430 }: {
  dots: readonly Dot[]; roofs: readonly Roof[]; x: { label: string; unit: string }; y: { label: string; unit: string };
  groups: readonly string[]; colours: readonly string[]; chosen: string; onChoose?: (d: Dot | null) => void; title: string; height?: number;
  onArea?: (a: Area) => void; // a rectangle was drawn
  onLasso?: ((points: Point[]) => void) | undefined; // a free line was: drags are one where this is given
  lasso?: readonly Point[] | null; // the one that holds
  wholes?: readonly Mark[];
}) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box, 760);
  const hover = useSignal<string>("");
  const drag = useSignal<Area | null>(null); // in px, as it was drawn
  const line = useSignal<readonly Point[]>([]); // likewise
  const dragged = useRef(false);
  const off = useSignal<ReadonlySet<string>>(new Set());
  const seen = useMemo(
    () => dots.filter((d) => d.x > 0 && d.y > 0 && !off.value.has(d.group)).sort((a, b) => b.weight - a.weight),
    [dots, off.value],
  );
  const bounds = useMemo(() => boundsOf([...dots, ...wholes].filter((d) => d.x > 0 && d.y > 0), roofs), [dots, roofs, wholes]);
  const inner = Math.max(60, width.value - leftRoom() - rightRoom());
  const tall = height - topRoom() - bottomRoom();
  const ax = logAxis(bounds.x0, bounds.x1, x.unit, bare, Math.floor(inner / len(90)));
  const ay = logAxis(bounds.y0, bounds.y1, y.unit, unitTick, 7);
  const sx = (v: number): number => leftRoom() + (Math.log10(v / ax.min) / Math.log10(ax.max / ax.min)) * inner;
  const sy = (v: number): number => topRoom() + tall - (Math.log10(v / ay.min) / Math.log10(ay.max / ay.min)) * tall;
  const inverse = (px: number): number => ax.min * (ax.max / ax.min) ** ((px - leftRoom()) / inner);
  const slopes = roofs.map((r) => slopeOf(r, ax, ay, sx, sy));
  const names = placeNames(roofs, slopes, sx);
  const inverseY = (py: number): number => ay.min * (ay.max / ay.min) ** ((topRoom() + tall - py) / tall);
  const radius = (w: number): number => Math.max(2, 20 * Math.sqrt(Math.max(0, w)));
  const colour = (group: string): string => colours[Math.max(0, groups.indexOf(group))] ?? "var(--c0)";
  const drawn = wholes.filter((d) => d.x > 0 && d.y > 0);
  const marks = [...seen, ...drawn];
  const here = marks.find((d) => d.key === (hover.value || "")) ?? null;

  const placeOf = (e: PointerEvent): [number, number] => {
    const r = box.current!.getBoundingClientRect();
    return [e.clientX - r.left, e.clientY - r.top];
  };
  const begin = (e: PointerEvent): void => {
    dragged.current = false;
    if (!onArea || e.button !== 0 || e.pointerType === "touch") return;
    const [px, py] = placeOf(e);
    (e.currentTarget as Element).setPointerCapture(e.pointerId);
    if (onLasso) line.value = [[px, py]];
    else drag.value = { x0: px, x1: px, y0: py, y1: py };
  };
  const endLine = (): void => {
    const drawn = line.peek();
    line.value = [];
    const [w, h] = [0, 1].map((k) => Math.max(...drawn.map((p) => p[k]!)) - Math.min(...drawn.map((p) => p[k]!))) as [number, number];
    if (drawn.length < 3 || w < LEAST || h < LEAST) return;
    dragged.current = true;
    onLasso?.(fewer(drawn).map(([px, py]) => [inverse(px), inverseY(py)]));
  };
  const end = (): void => {
    if (line.peek().length) return endLine();
    const d = drag.peek();
    drag.value = null;
    if (!d || Math.hypot(d.x1 - d.x0, d.y1 - d.y0) < LEAST) return;
    dragged.current = true;
    const [left, right] = [Math.min(d.x0, d.x1), Math.max(d.x0, d.x1)];
    const [top, bottom] = [Math.min(d.y0, d.y1), Math.max(d.y0, d.y1)];
    onArea?.({ x0: inverse(left), x1: inverse(right), y0: inverseY(bottom), y1: inverseY(top) });
  };
  const nearest = (e: PointerEvent): void => {
    const [px, py] = placeOf(e);
    if (line.peek().length) {
      hover.value = "";
      const [lx, ly] = line.peek()[line.peek().length - 1]!;
      if (line.peek().length < DRAWN && Math.hypot(px - lx, py - ly) >= 2) line.value = [...line.peek(), [px, py]];
      return;
    }
    if (drag.peek()) {
      hover.value = "";
      drag.value = { ...drag.peek()!, x1: px, y1: py };
      return;
    }
    let best = "";
    let least = Infinity;
    for (const d of marks) {
      const far = Math.hypot(sx(d.x) - px, sy(d.y) - py) - radius(d.weight) * 0.7;
      if (far < least) [least, best] = [far, d.key];
    }
    hover.value = least < 14 ? best : "";
  };
  const keys = (e: KeyboardEvent): void => {
    const step = e.key === "ArrowRight" || e.key === "ArrowDown" ? 1 : e.key === "ArrowLeft" || e.key === "ArrowUp" ? -1 : 0;
    if (step && seen.length) {
      e.preventDefault();
      const i = seen.findIndex((d) => d.key === hover.peek());
      hover.value = seen[Math.min(seen.length - 1, Math.max(0, i + step))]!.key;
    } else if (e.key === "Enter" && here) onChoose?.(here);
    else if (e.key === "Escape") hover.value = "";
  };
  const used = groups.filter((g) => dots.some((d) => d.group === g));
  return (
    <figure class="chart scatter" aria-label={title}>
      <div class="legend-row" role="group" aria-label={`Shown in ${title}`}>
        {used.map((g) => (
          <button
            key={g} type="button" class="legend-item" aria-pressed={!off.value.has(g)}
            onClick={() => {
              const next = new Set(off.peek());
              if (!next.delete(g)) next.add(g);
              off.value = next;
            }}
          >
            <i class="swatch round" style={{ background: colour(g) }} /> {g || "other"}
          </button>
        ))}
      </div>
      <div
        ref={box} class="plot" tabIndex={0} role="img" onKeyDown={keys} onPointerMove={nearest} onPointerLeave={() => (hover.value = "")}
        onPointerDown={begin} onPointerUp={end} onPointerCancel={() => ((drag.value = null), (line.value = []))}
        onClick={() => !dragged.current && !(here && drawn.some((d) => d === here)) && onChoose?.(here && here.key !== chosen ? here : null)}
        aria-label={`${title}: ${seen.length} points; ${x.label} against ${y.label}. Arrow keys go from the heaviest on.${onArea ? onLasso ? " A drag chooses those inside of its line." : " A drag chooses those in a rectangle." : ""}`}
      >
        <svg width={width.value} height={height} aria-hidden="true">
          {ax.ticks.map((t) => (
            <g key={t.at}>
              <line class="grid" x1={sx(t.at)} x2={sx(t.at)} y1={topRoom()} y2={topRoom() + tall} />
              <text class="tick" x={sx(t.at)} y={topRoom() + tall + len(16)} text-anchor="middle">{t.text}</text>
            </g>
          ))}
          {ay.ticks.map((t) => (
            <g key={t.at}>
              <line class="grid" x1={leftRoom()} x2={leftRoom() + inner} y1={sy(t.at)} y2={sy(t.at)} />
              <text class="tick" x={leftRoom() - len(8)} y={sy(t.at) + len(4)} text-anchor="end">{t.text}</text>
            </g>
          ))}
          <text class="axis" x={leftRoom()} y={height - len(5)}>{y.label}</text>
          <text class="axis" x={leftRoom() + inner} y={height - len(5)} text-anchor="end">{`${x.label}${x.unit && inner > len(260) ? `, ${x.unit === "flop/byte" ? "FLOP/B" : x.unit}` : ""}`}</text>
          {roofs.map((r, i) => <RoofLine key={r.name} r={r} i={i} slope={slopes[i]!} ax={ax} ay={ay} sx={sx} sy={sy} />)}
          {seen.map((d) => (
            <circle
              key={d.key} class={`bubble ${d.key === chosen ? "chosen" : ""} ${d === here ? "hover" : ""} ${d.dim ? "dim" : ""}`} cx={sx(d.x)} cy={sy(d.y)}
              r={radius(d.weight)} fill={colour(d.group)}
            />
          ))}
          {drawn.map((d) => <path key={d.key} class={`whole-mark ${d.sign} ${d === here ? "hover" : ""}`} d={`M${sx(d.x)} ${sy(d.y)}${SIGNS[d.sign]}`} />)}
          {lasso && <path class="chosen-area" d={`M${lasso.map(([px, py]) => `${sx(px).toFixed(1)} ${sy(py).toFixed(1)}`).join("L")}Z`} />}
          {line.value.length > 1 && <path class="chosen-area" d={`M${line.value.map(([px, py]) => `${px} ${py}`).join("L")}`} />}
          {drag.value && (
            <rect
              class="chosen-area" x={Math.min(drag.value.x0, drag.value.x1)} y={Math.min(drag.value.y0, drag.value.y1)}
              width={Math.abs(drag.value.x1 - drag.value.x0)} height={Math.abs(drag.value.y1 - drag.value.y0)}
            />
          )}
          {roofs.map((r, i) => <RoofName key={r.name} r={r} i={i} turn={slopes[i]!.turn} name={names[i]!} above={roofs.every((o) => o.slope <= r.slope)} ax={ax} inverse={inverse} sx={sx} sy={sy} />)}
        </svg>
        {here && (
          <div class="chart-tip" role="status" style={{
            ...(sx(here.x) > width.value * 0.6 ? { right: `${width.value - sx(here.x) + 18}px` } : { left: `${sx(here.x) + 18}px` }),
            top: `${Math.max(0, Math.min(height - 190, sy(here.y) - 20))}px`,
          }}>
            <b>{shorten(here.name, 60)}</b>
            <dl>{here.facts.map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{shorten(v, 60)}</dd></div>)}</dl>
          </div>
        )}
      </div>
    </figure>
  );
}

/** 10.00 PFLOP/s is 10 PFLOP/s on an axis. */
const short = (text: string): string => text.replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");
const bare = (v: number): string => (v >= 1e5 || v < 1e-3 ? v.toExponential(0) : short(show(v, "")));
const unitTick = (v: number, unit: string): string => short(number(v, unit));

function boundsOf(dots: readonly Dot[], roofs: readonly Roof[]): { x0: number; x1: number; y0: number; y1: number } {
  let [x0, x1, y0, y1] = [Infinity, 0, Infinity, 0];
  for (const d of dots) {
    x0 = Math.min(x0, d.x);
    x1 = Math.max(x1, d.x);
    y0 = Math.min(y0, d.y);
    y1 = Math.max(y1, d.y);
  }
  for (const r of roofs) {
    y1 = Math.max(y1, r.peak * 1.5);
    if (r.slope > 0) {
      x1 = Math.max(x1, (r.peak / r.slope) * 3);
      x0 = Math.min(x0, (r.peak / r.slope) / 30);
    }
  }
  if (!Number.isFinite(x0)) [x0, x1] = [0.1, 1000];
  if (!Number.isFinite(y0)) y0 = Math.max(y1 / 1e4, 1);
  return { x0, x1, y0, y1: Math.max(y1, y0 * 10) };
}

interface Box {
  min: number;
  max: number;
}

interface Slope {
  from: number; // x
  bend: number; // x
  turn: number; // degrees on the screen
}

function slopeOf(r: Roof, ax: Box, ay: Box, sx: (v: number) => number, sy: (v: number) => number): Slope {
  const ridge = r.slope > 0 ? r.peak / r.slope : ax.min;
  const from = r.slope > 0 ? Math.max(ax.min, ay.min / r.slope) : ax.min;
  const bend = Math.min(Math.max(ridge, from), ax.max);
  const k = r.slope || 1;
  return { from, bend, turn: Math.atan2(sy(bend * k) - sy(from * k), sx(bend) - sx(from)) * (180 / Math.PI) };
}

const letterWidth = (): number => 6.4 * unit(); // px

/** Where along its slope each roof's name stands, in px; NaN: no room. Roofs lie close and alike in
    direction: names that share no column do not cross. */
function placeNames(roofs: readonly Roof[], slopes: readonly Slope[], sx: (v: number) => number): number[] {
  const out = roofs.map(() => NaN);
  let right = Infinity;
  const flattestFirst = roofs.map((_, i) => i).filter((i) => roofs[i]!.slope > 0).sort((a, b) => roofs[a]!.slope - roofs[b]!.slope);
  for (const i of flattestFirst) {
    const s = slopes[i]!;
    const half = (roofs[i]!.name.length * letterWidth() * Math.cos((s.turn * Math.PI) / 180)) / 2;
    const middle = Math.min(sx(s.bend) - 24, right) - half;
    if (middle - half < sx(s.from) + 2) continue;
    out[i] = middle;
    right = middle - half - 12;
  }
  return out;
}

function RoofLine({ r, i, slope: { from, bend }, ax, ay, sx, sy }: {
  r: Roof; i: number; slope: Slope; ax: Box; ay: Box; sx: (v: number) => number; sy: (v: number) => number;
}) {
  const points = [[from, r.slope > 0 ? from * r.slope : r.peak], [bend, r.slope > 0 ? bend * r.slope : r.peak], [ax.max, Math.min(r.peak, r.slope > 0 ? ax.max * r.slope : r.peak)]];
  const d = points.map(([a, b], k) => `${k ? "L" : "M"}${sx(a!).toFixed(1)} ${sy(Math.max(b!, ay.min)).toFixed(1)}`).join("");
  return <path class={`roof-line r${i % 4}`} d={d} />;
}

/** Names stand below their roofs, where the others are not, and before the dots; that of the uppermost above it. */
function RoofName({ r, i, turn, name, above, ax, inverse, sx, sy }: {
  r: Roof; i: number; turn: number; name: number; above: boolean; ax: Box; inverse: (px: number) => number; sx: (v: number) => number; sy: (v: number) => number;
}) {
  return (
    <g class="roof-names">
      {!Number.isNaN(name) && (
        <text class="roof-text" x={0} y={0} text-anchor="middle" transform={`translate(${name} ${sy(inverse(name) * r.slope)}) rotate(${turn})`} dy={above ? -len(6) : len(14)}>{r.name}</text>
      )}
      {(r.slope === 0 || i === 0) && <text class="roof-text" x={sx(ax.max) - len(4)} y={sy(r.peak) - len(6)} text-anchor="end">{`peak ${number(r.peak, "flop/s")}`}</text>}
    </g>
  );
}
