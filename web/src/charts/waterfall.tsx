// From one total to another, part by part.
import { useRef } from "preact/hooks";
import { px as len } from "../layout/unit";
import type { Part } from "../model/compare";
import { show, signed } from "../model/units";
import { useWidth } from "../widgets/size";
import { linearAxis } from "./scale";
import { shorten } from "./xy";

const rowHeight = (): number => len(27);
const labelsWidth = (): number => len(170);
const valuesWidth = (): number => len(104);

export function Waterfall({ parts, totalA, totalB, labelA, labelB }: {
  parts: readonly Part[]; totalA: number; totalB: number; labelA: string; labelB: string;
}) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box, 900);
  const inner = Math.max(60, width.value - labelsWidth() - valuesWidth());
  // The totals are mostly far above the changes: the axis begins below the least of the way.
  let at = totalA;
  let low = Math.min(totalA, totalB);
  let high = Math.max(totalA, totalB);
  for (const p of parts) {
    at += p.b - p.a;
    low = Math.min(low, at);
    high = Math.max(high, at);
  }
  const cutOff = high - low < high * 0.35 ? Math.max(0, low - (high - low) * 0.6) : 0;
  const axis = linearAxis(cutOff, high, "ps", Math.max(2, Math.floor(inner / len(120))));
  const sx = (v: number): number => labelsWidth() + ((Math.max(v, axis.min) - axis.min) / (axis.max - axis.min)) * inner;
  const rows: { name: string; from: number; to: number; kind: "total" | "more" | "less"; value: string }[] = [
    { name: labelA, from: axis.min, to: totalA, kind: "total", value: show(Math.round(totalA), "ps") },
  ];
  let now = totalA;
  for (const p of parts) {
    const d = p.b - p.a;
    rows.push({ name: p.name, from: now, to: now + d, kind: d > 0 ? "more" : "less", value: signed(Math.round(d), "ps") });
    now += d;
  }
  rows.push({ name: labelB, from: axis.min, to: totalB, kind: "total", value: show(Math.round(totalB), "ps") });
  const height = rows.length * rowHeight() + len(24);
  return (
    <figure class="chart waterfall" aria-label="What the change is made of">
      <div ref={box} class="plot">
        <svg width={width.value} height={height} role="img" aria-label={rows.map((r) => `${r.name} ${r.value}`).join("; ")}>
          {axis.ticks.map((t) => (
            <g key={t.at}>
              <line class="grid" x1={sx(t.at)} x2={sx(t.at)} y1={0} y2={rows.length * rowHeight()} />
              <text class="tick" x={sx(t.at)} y={height - len(8)} text-anchor="middle">{`${t.text} ${axis.title}`}</text>
            </g>
          ))}
          {rows.map((r, i) => {
            const a = Math.min(sx(r.from), sx(r.to));
            const w = Math.max(1.5, Math.abs(sx(r.to) - sx(r.from)));
            return (
              <g key={i} class={`fall ${r.kind}`}>
                <title>{`${r.name}: ${r.value}`}</title>
                <text class="fall-name" x={labelsWidth() - len(10)} y={i * rowHeight() + len(18)} text-anchor="end">{shorten(r.name, 24)}</text>
                <rect x={a} y={i * rowHeight() + 4} width={w} height={rowHeight() - 8} rx={2} />
                {i < rows.length - 1 && <line class="fall-link" x1={sx(r.to)} x2={sx(r.to)} y1={i * rowHeight() + rowHeight() - 4} y2={(i + 1) * rowHeight() + 4} />}
                <text class="fall-value" x={a + w + len(7)} y={i * rowHeight() + len(18)}>{r.value}</text>
              </g>
            );
          })}
        </svg>
      </div>
      {axis.min > 0 && <p class="table-note">The axis does not begin at 0.</p>}
    </figure>
  );
}
