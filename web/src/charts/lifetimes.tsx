// Buffers as boxes: from the step of the program that makes them to the last that reads them, as
// high as they are large.
import { useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import { px as len, unit } from "../layout/unit";
import { byOffset, bySize, type Buffer } from "../model/lifetimes";
import { show } from "../model/units";
import { useWidth } from "../widgets/size";
import { seriesColours } from "./colours";
import { linearAxis } from "./scale";
import { SpanBand, useSpan } from "./span";
import { shorten } from "./xy";

const leftRoom = (): number => len(62);
const rightRoom = (): number => len(12);
const bottomRoom = (): number => len(38);
const fullHeight = (): number => len(300);

/** `from`, `to`: the steps that are shown; a drag chooses fewer. `offsets`: heights are addresses. */
export function Lifetimes({ buffers, last, from, to, peak, chosen, offsets, onChoose, onSpan }: {
  buffers: readonly Buffer[]; last: number; from: number; to: number; peak: number; chosen: string; offsets: boolean;
  onChoose: (b: Buffer) => void; onSpan: (from: number, to: number) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box, 900);
  const hover = useSignal("");
  const kinds = useMemo(() => [...new Set(buffers.map((b) => b.kind))], [buffers]);
  const colours = useMemo(() => seriesColours(kinds), [kinds]);
  const stack = useMemo(() => (offsets ? byOffset : bySize)(buffers, last), [buffers, offsets]);
  const total = buffers.reduce((a, b) => a + b.size, 0);
  const top = stack.reduce((a, x) => Math.max(a, x.base + x.b.size), 0);
  const inner = Math.max(60, width.value - leftRoom() - rightRoom());
  const y = linearAxis(0, top, "bytes");
  const wide = Math.max(1, to - from);
  const x = linearAxis(from, from + wide, "", Math.max(2, Math.floor(inner / len(110))));
  const sx = (v: number): number => leftRoom() + Math.min(1, Math.max(0, (v - from) / wide)) * inner;
  const stepAt = (clientX: number): number => {
    const px = clientX - box.current!.getBoundingClientRect().left - leftRoom();
    return Math.round(from + Math.min(1, Math.max(0, px / inner)) * wide);
  };
  const span = useSpan((a, b) => a !== b && onSpan(Math.min(a, b), Math.max(a, b)));
  const sy = (v: number): number => 8 + (fullHeight() - bottomRoom() - 8) * (1 - v / y.max);
  const here = stack.find((s) => s.b.key === hover.value);
  const keys = (e: KeyboardEvent): void => {
    const step = e.key === "ArrowUp" ? 1 : e.key === "ArrowDown" ? -1 : 0;
    if (step) {
      e.preventDefault();
      const i = stack.findIndex((s) => s.b.key === hover.peek());
      hover.value = stack[Math.min(stack.length - 1, Math.max(0, i + step))]?.b.key ?? "";
    } else if (e.key === "Enter" && here) onChoose(here.b);
  };
  return (
    <figure class="chart lifetimes" aria-label="Lifetimes of buffers">
      <div class="legend-row">{kinds.map((k, i) => <span key={k} class="legend-item"><i class="swatch" style={{ background: colours[i] }} /> {k}</span>)}</div>
      <div
        ref={box} class="plot" tabIndex={0} role="img" onKeyDown={keys} onPointerLeave={() => (hover.value = "")}
        onPointerDown={(e) => span.down(e, stepAt(e.clientX))} onPointerMove={(e) => span.extend(stepAt(e.clientX))} onPointerUp={() => span.up()} onPointerCancel={() => span.cancel()}
        aria-label={`${buffers.length} buffers, ${show(total, "bytes")} together. Up and down go through them, the table below says the same.`}
      >
        <svg width={width.value} height={fullHeight()} aria-hidden="true">
          {y.ticks.map((t) => (
            <g key={t.at}>
              <line class="grid" x1={leftRoom()} x2={leftRoom() + inner} y1={sy(t.at)} y2={sy(t.at)} />
              <text class="tick" x={leftRoom() - len(8)} y={sy(t.at) + len(4)} text-anchor="end">{t.text}</text>
            </g>
          ))}
          {x.ticks.filter((t) => t.at >= from && t.at <= from + wide).map((t) => <text key={t.at} class="tick" x={sx(t.at)} y={fullHeight() - bottomRoom() + len(16)} text-anchor="middle">{t.text}</text>)}
          {stack.filter(({ b }) => b.end > from && b.begin < from + wide).map(({ b, base }) => {
            const h = sy(base) - sy(base + b.size);
            return (
              <g key={b.key} class={`life ${chosen && b.name === chosen ? "chosen" : ""}`} onPointerMove={() => (hover.value = b.key)} onClick={() => !span.took() && onChoose(b)}>
                <rect x={sx(b.begin)} y={sy(base + b.size)} width={Math.max(2, sx(b.end) - sx(b.begin))} height={Math.max(0.8, h - (h > 4 ? 1 : 0))} fill={colours[kinds.indexOf(b.kind)]} />
                {h > len(15) && <text class="slab-text" x={sx(b.begin) + len(6)} y={sy(base + b.size) + Math.min(h / 2 + len(4), len(16))}>{shorten(b.name, Math.floor((sx(b.end) - sx(b.begin) - 10) / (7 * unit())))}</text>}
              </g>
            );
          })}
          {span.from.value >= 0 && span.to.value >= 0 && <SpanBand a={sx(span.from.value)} b={sx(span.to.value)} pad={0} top={8} tall={fullHeight() - bottomRoom() - 8} />}
          {peak >= from && peak <= from + wide && <line class="cursor-line" x1={sx(peak)} x2={sx(peak)} y1={8} y2={fullHeight() - bottomRoom()} />}
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
      </div>
    </figure>
  );
}
