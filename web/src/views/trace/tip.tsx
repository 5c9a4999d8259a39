// What the pointer is on.
import type { ReadonlySignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { rulerHeight } from "../../draw/timeline";
import { duration, exactNs, percent, plural, timestamp } from "../../model/format";
import { plain } from "../../model/units";
import { curveValue } from "./curves";
import type { Pointer } from "./pointer";
import type { Hover } from "./picture";
import type { Trace } from "./trace";

const OFF = 14;

function Merged({ h }: { h: Hover }) {
  const length = Number(h.mark.end - h.mark.begin);
  return (
    <>
      <div class="tip-merged">{plural(h.count, "event")} merged here; the longest is</div>
      <div class="tip-name">{h.name.text || "(no name)"}</div>
      <div class="tip-facts">
        {duration(length)} in all, {percent(h.busy, length)} busy. Zoom in to see each.
      </div>
    </>
  );
}

function Single({ h }: { h: Hover }) {
  const length = h.mark.end - h.mark.begin;
  return (
    <>
      <div class="tip-name">{h.name.text || "(no name)"}</div>
      <div class="tip-facts">
        <b>{duration(length)}</b> ({exactNs(length)}) at {timestamp(h.mark.begin)}
      </div>
    </>
  );
}

export function Tip({ trace, at }: { trace: Trace; at: ReadonlySignal<Pointer | null> }) {
  const box = useRef<HTMLDivElement>(null);
  const h = trace.hover.value;
  const p = at.value;

  useLayoutEffect(() => {
    const el = box.current;
    if (!el || !p) return;
    const { width, height } = trace.size.peek();
    const x = p.x + OFF + el.offsetWidth > width ? Math.max(4, p.x - OFF - el.offsetWidth) : p.x + OFF;
    const y = p.y + OFF + el.offsetHeight > height ? Math.max(4, p.y - OFF - el.offsetHeight) : p.y + OFF;
    el.style.transform = `translate(${Math.round(x)}px, ${Math.round(y + rulerHeight())}px)`;
  });

  const point = trace.point.value;
  if (point && p && !trace.dragging.value) {
    const { stat, name } = point.row.curve!;
    return (
      <div class="tip" ref={box} aria-hidden="true">
        <div class="tip-name">{name || stat}</div>
        <div class="tip-facts"><b>{curveValue(stat, point.v)}</b> ({plain(point.v)}) since {timestamp(point.at)}</div>
        <div class="tip-where">{point.row.plane.name} › {point.row.line?.name}</div>
      </div>
    );
  }
  if (!h || !p || trace.dragging.value) return null;
  return (
    <div class="tip" ref={box} aria-hidden="true">
      {h.count > 1 ? <Merged h={h} /> : <Single h={h} />}
      <div class="tip-where">
        <i class="swatch" style={{ background: h.name.colour }} /> {h.name.category} · {h.row.plane.name} › {h.row.line?.name}
      </div>
    </div>
  );
}
