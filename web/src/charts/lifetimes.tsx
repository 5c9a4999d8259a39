// Buffers as boxes: from the step of the program that makes them to the last that reads them, as
// high as they are large; the curve of what they add up to above them.
import { useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import { px as len, unit } from "../layout/unit";
import { plural } from "../model/format";
import { byOffset, bySize, together, type Buffer, type Placed, type Rest } from "../model/lifetimes";
import { show } from "../model/units";
import { useWidth } from "../widgets/size";
import { seriesColours } from "./colours";
import { linearAxis, type Axis } from "./scale";
import { SpanBand, useSpan } from "./span";
import { shorten } from "./xy";

const leftRoom = (): number => len(62);
const rightRoom = (): number => len(12);
const bottomRoom = (): number => len(38);
const curveHeight = (): number => len(96);
const fullHeight = (): number => len(430);
const topRoom = 8;

const THIN = 1.2; // px; what is lower is told together with others

interface Picture {
  stack: Placed[];
  rest: Rest | null; // what is too low for a box of its own
  restBase: number; // bytes; it lies on top of all boxes
  small: number;
  top: number;
}

/** What is seen between two steps, in a chart of so many pixels. */
function pictureOf(buffers: readonly Buffer[], more: readonly (readonly [number, number, number])[], last: number, from: number, to: number, offsets: boolean, wide: number, high: number): Picture {
  const seen = buffers.filter((b) => b.end > from && b.begin < to);
  const topOf = (stack: readonly Placed[]): number => stack.reduce((a, x) => Math.max(a, x.base + x.b.size), 0);
  if (offsets) {
    const stack = byOffset(seen, last);
    return { stack, rest: null, restBase: 0, small: 0, top: topOf(stack) };
  }
  // As high as it gets without those that are left out: what is lower than a pixel then is.
  const least = (topOf(bySize(seen, last)) / high) * THIN;
  const small = seen.filter((b) => b.size < least);
  const stack = bySize(seen.filter((b) => b.size >= least), last);
  const base = topOf(stack);
  if (small.length === 0 && more.length === 0) return { stack, rest: null, restBase: 0, small: 0, top: base };
  const rest = together(small, more, from, to, Math.max(1, Math.round(wide / 2)));
  return { stack, rest, restBase: base, small: small.length, top: base + rest.bytes.reduce((a, v) => Math.max(a, v), 0) };
}

/** `from`, `to`: the steps that are shown; a drag chooses fewer. `offsets`: heights are addresses. `curve`: step and bytes. */
export function Lifetimes({ buffers, more, curve, last, from, to, peak, chosen, offsets, onChoose, onSpan }: {
  buffers: readonly Buffer[]; more: readonly (readonly [step: number, bytes: number, count: number])[]; curve: readonly (readonly [step: number, bytes: number])[];
  last: number; from: number; to: number; peak: number; chosen: string; offsets: boolean;
  onChoose: (b: Buffer) => void; onSpan: (from: number, to: number) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box, 900);
  const hover = useSignal("");
  const over = useSignal(-1); // place in the rest
  const kinds = useMemo(() => [...new Set(buffers.map((b) => b.kind))], [buffers]);
  const colours = useMemo(() => seriesColours(kinds), [kinds]);
  const inner = Math.max(60, width.value - leftRoom() - rightRoom());
  const below = curve.length > 1 ? topRoom + curveHeight() : topRoom; // where boxes begin
  const high = fullHeight() - bottomRoom() - below;
  const picture = useMemo(() => pictureOf(buffers, more, last, from, to, offsets, inner, high), [buffers, more, last, from, to, offsets, inner, high]);
  const { stack, rest } = picture;
  const total = buffers.reduce((a, b) => a + b.size, 0);
  const y = linearAxis(0, picture.top, "bytes");
  const wide = Math.max(1, to - from);
  const x = linearAxis(from, from + wide, "", Math.max(2, Math.floor(inner / len(110))));
  const sx = (v: number): number => leftRoom() + Math.min(1, Math.max(0, (v - from) / wide)) * inner;
  const stepAt = (clientX: number): number => {
    const px = clientX - box.current!.getBoundingClientRect().left - leftRoom();
    return Math.round(from + Math.min(1, Math.max(0, px / inner)) * wide);
  };
  const span = useSpan((a, b) => a !== b && onSpan(Math.min(a, b), Math.max(a, b)));
  const sy = (v: number): number => below + high * (1 - v / y.max);
  const here = stack.find((s) => s.b.key === hover.value);
  const point = (key: string): void => {
    hover.value = key;
    over.value = -1;
  };
  const keys = (e: KeyboardEvent): void => {
    const step = e.key === "ArrowUp" ? 1 : e.key === "ArrowDown" ? -1 : 0;
    if (step) {
      e.preventDefault();
      const i = stack.findIndex((s) => s.b.key === hover.peek());
      point(stack[Math.min(stack.length - 1, Math.max(0, i + step))]?.b.key ?? "");
    } else if (e.key === "Enter" && here) onChoose(here.b);
  };
  const overRest = (e: PointerEvent): void => {
    hover.value = "";
    over.value = Math.min(rest!.bytes.length - 1, Math.max(0, Math.floor(((e.clientX - box.current!.getBoundingClientRect().left - leftRoom()) / inner) * rest!.bytes.length)));
  };
  const told = rest && over.value >= 0 ? over.value : -1;
  const past = stack.some(({ b }) => b.atPeak === false);
  return (
    <figure class="chart lifetimes" aria-label="Lifetimes of buffers">
      <div class="legend-row">
        {kinds.map((k, i) => <span key={k} class="legend-item"><i class="swatch" style={{ background: colours[i] }} /> {k}</span>)}
        {past && <span class="legend-item"><i class="swatch pale" style={{ background: colours[Math.max(0, kinds.indexOf("Temporary"))] }} /> pale: not alive at the peak</span>}
        {rest && <span class="legend-item"><i class="swatch rest" /> {picture.small > 0 ? `${plural(picture.small, "buffer")} too small for a box${more.length ? ", and what no buffer is told of" : ""}` : "what no buffer is told of"}, together</span>}
      </div>
      <div
        ref={box} class="plot" tabIndex={0} role="img" onKeyDown={keys} onPointerLeave={() => ((hover.value = ""), (over.value = -1))}
        onPointerDown={(e) => span.down(e, stepAt(e.clientX))} onPointerMove={(e) => span.extend(stepAt(e.clientX))} onPointerUp={() => span.up()} onPointerCancel={() => span.cancel()}
        aria-label={`${buffers.length} buffers, ${show(total, "bytes")} together. Up and down go through them, the table below says the same.`}
      >
        <svg width={width.value} height={fullHeight()} aria-hidden="true">
          {curve.length > 1 && <Curve curve={curve} from={from} to={from + wide} sx={sx} inner={inner} />}
          {y.ticks.map((t) => (
            <g key={t.at}>
              <line class="grid" x1={leftRoom()} x2={leftRoom() + inner} y1={sy(t.at)} y2={sy(t.at)} />
              <text class="tick" x={leftRoom() - len(8)} y={sy(t.at) + len(4)} text-anchor="end">{t.text}</text>
            </g>
          ))}
          {x.ticks.filter((t) => t.at >= from && t.at <= from + wide).map((t) => <text key={t.at} class="tick" x={sx(t.at)} y={fullHeight() - bottomRoom() + len(16)} text-anchor="middle">{t.text}</text>)}
          {stack.map(({ b, base }) => {
            const h = sy(base) - sy(base + b.size);
            return (
              <g key={b.key} class={`life ${chosen && b.name === chosen ? "chosen" : ""} ${b.atPeak === false ? "past" : ""}`} onPointerMove={() => point(b.key)} onClick={() => !span.took() && onChoose(b)}>
                <rect x={sx(b.begin)} y={sy(base + b.size)} width={Math.max(2, sx(b.end) - sx(b.begin))} height={Math.max(0.8, h - (h > 4 ? 1 : 0))} fill={colours[kinds.indexOf(b.kind)]} />
                {h > len(15) && <text class="slab-text" x={sx(b.begin) + len(6)} y={sy(base + b.size) + Math.min(h / 2 + len(4), len(16))}>{shorten(b.name, Math.floor((sx(b.end) - sx(b.begin) - 10) / (7 * unit())))}</text>}
              </g>
            );
          })}
          {rest && <RestBand rest={rest} base={picture.restBase} sy={sy} inner={inner} onMove={overRest} />}
          {span.from.value >= 0 && span.to.value >= 0 && <SpanBand a={sx(span.from.value)} b={sx(span.to.value)} pad={0} top={topRoom} tall={fullHeight() - bottomRoom() - topRoom} />}
          {peak >= from && peak <= from + wide && <line class="cursor-line" x1={sx(peak)} x2={sx(peak)} y1={topRoom} y2={fullHeight() - bottomRoom()} />}
          {peak >= from && peak <= from + wide && <text class="axis" x={Math.min(sx(peak) + 5, leftRoom() + inner - len(30))} y={fullHeight() - bottomRoom() - len(5)}>peak</text>}
          <text class="axis" x={leftRoom()} y={fullHeight() - len(4)}>{`${offsets ? "Offset, allocations one on the other" : "Size"}, ${y.title}`}</text>
          <text class="axis" x={leftRoom() + inner} y={fullHeight() - len(4)} text-anchor="end">step of the program</text>
        </svg>
        {here && (
          <div class="chart-tip" role="status" style={{ right: "12px" }}>
            <b>{shorten(here.b.name, 60)}</b>
            <dl>{here.b.facts.map(([k, v]) => <div key={k}><dt>{k}</dt><dd>{shorten(v, 48)}</dd></div>)}</dl>
          </div>
        )}
        {told >= 0 && (
          <div class="chart-tip" role="status" style={{ right: "12px" }}>
            <b>Small ones together</b>
            <dl>
              <div><dt>Step</dt><dd>{Math.floor(from + (told / rest!.bytes.length) * wide)}</dd></div>
              <div><dt>Alive</dt><dd>{plural(rest!.count[told]!, "buffer")}</dd></div>
              <div><dt>Size</dt><dd>{show(rest!.bytes[told]!, "bytes")}</dd></div>
            </dl>
          </div>
        )}
      </div>
    </figure>
  );
}

/** Memory over the program's order, on the same steps as the boxes. */
function Curve({ curve, from, to, sx, inner }: { curve: readonly (readonly [number, number])[]; from: number; to: number; sx: (v: number) => number; inner: number }) {
  const seen = curve.filter(([step]) => step >= from && step <= to);
  const y: Axis = linearAxis(0, seen.reduce((a, [, v]) => Math.max(a, v), 0), "bytes", 2);
  const high = curveHeight() - len(16);
  const sy = (v: number): number => topRoom + high * (1 - v / y.max);
  // What it is before a step, it was since the one before.
  const line = seen.map(([step, v], i) => (i ? `V${sy(v).toFixed(1)}H${sx(step).toFixed(1)}` : `M${sx(step).toFixed(1)} ${sy(v).toFixed(1)}`)).join("");
  const [first, end] = [seen[0]?.[0] ?? from, seen[seen.length - 1]?.[0] ?? to];
  return (
    <g class="life-curve">
      {y.ticks.map((t) => (
        <g key={t.at}>
          <line class="grid" x1={leftRoom()} x2={leftRoom() + inner} y1={sy(t.at)} y2={sy(t.at)} />
          <text class="tick" x={leftRoom() - len(8)} y={sy(t.at) + len(4)} text-anchor="end">{t.text}</text>
        </g>
      ))}
      {seen.length > 1 && <path class="life-area" d={`${line}H${sx(end)}V${sy(0)}H${sx(first)}Z`} />}
      {seen.length > 1 && <path class="life-line" d={line} />}
      <text class="axis" x={leftRoom() + len(4)} y={topRoom + len(11)}>{`Memory over the program, ${y.title}`}</text>
    </g>
  );
}

function RestBand({ rest, base, sy, inner, onMove }: { rest: Rest; base: number; sy: (v: number) => number; inner: number; onMove: (e: PointerEvent) => void }) {
  const n = rest.bytes.length;
  const at = (i: number): string => (leftRoom() + (i / n) * inner).toFixed(1);
  let d = `M${at(0)} ${sy(base).toFixed(1)}`;
  for (let i = 0; i < n; i++) if (i === 0 || rest.bytes[i] !== rest.bytes[i - 1]) d += `H${at(i)}V${sy(base + rest.bytes[i]!).toFixed(1)}`;
  return <path class="life-rest" d={`${d}H${at(n)}V${sy(base).toFixed(1)}Z`} onPointerMove={onMove} />;
}
