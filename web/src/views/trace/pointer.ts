// Mouse and touch on the timeline's canvas.
import { rulerHeight } from "../../draw/timeline";
import { linesBetween } from "../../layout/rows";
import type { Area, Mode } from "../../model/url";
import type { View } from "../../model/view";
import { hitAt, pointAt, snap } from "./picture";
import type { Trace } from "./trace";

const CLICK = 4; // px of travel that still is a click

interface Drag {
  id: number;
  x: number;
  y: number;
  view: View;
  top: number;
  what: Mode;
  moved: boolean;
  from: bigint; // of a measure
}

export interface Pointer {
  x: number;
  y: number; // in the rows' part
}

export function listenPointer(canvas: HTMLCanvasElement, trace: Trace, at: (p: Pointer | null) => void): () => void {
  let drag: Drag | null = null;
  const touches = new Map<number, Pointer>();

  const where = (e: MouseEvent): Pointer => {
    const box = canvas.getBoundingClientRect();
    return { x: e.clientX - box.left, y: e.clientY - box.top - rulerHeight() };
  };
  const width = (): number => Math.max(1, trace.size.peek().width);

  const areaOf = (p: Pointer, d: Drag): Area => {
    const top = trace.scrollTop.peek();
    // From the ruler: all rows; a zoom is about time only.
    const all = d.y < 0 || d.what === "zoom";
    const { rows, pinned, pinnedHeight } = trace.rows.peek();
    const above = d.y < pinnedHeight && p.y < pinnedHeight;
    const lines = all ? null : above ? linesBetween(pinned, d.y, p.y) : linesBetween(rows, d.y + d.top, p.y + top);
    return trace.areaOf(d.x, p.x, lines);
  };

  const held = (id: number, p: Pointer, what: Mode, moved: boolean): Drag => ({
    id, ...p, view: trace.view.peek(), top: trace.scrollTop.peek(), what, moved, from: what === "measure" ? snap(trace, p.x, p.y) : 0n,
  });

  const down = (e: PointerEvent): void => {
    if (e.button !== 0 && e.button !== 1) return;
    const p = where(e);
    touches.set(e.pointerId, p);
    canvas.setPointerCapture(e.pointerId);
    const mode = trace.mode.peek();
    const what = e.button === 1 ? "pan" : e.shiftKey ? "select" : p.y < 0 && mode === "pan" ? "zoom" : mode;
    trace.dragging.value = null; // a second finger begins something else
    drag = held(e.pointerId, p, what, false);
    e.preventDefault();
    canvas.focus({ preventScroll: true });
  };

  const pinch = (e: PointerEvent, p: Pointer): void => {
    const other = [...touches].find(([id]) => id !== e.pointerId)?.[1];
    const before = touches.get(e.pointerId);
    if (!other || !before) return;
    const gap = (a: Pointer): number => Math.max(20, Math.abs(a.x - other.x));
    trace.zoom(gap(before) / gap(p), (p.x + other.x) / 2 / width());
    trace.scrollBy((before.y - p.y) / 2);
  };

  const move = (e: PointerEvent): void => {
    const p = where(e);
    at(p);
    if (touches.size > 1) {
      pinch(e, p);
      touches.set(e.pointerId, p);
      if (drag) drag.moved = true;
      return;
    }
    if (!drag || drag.id !== e.pointerId) {
      trace.hover.value = p.y < 0 ? null : hitAt(trace, p.x, p.y);
      trace.point.value = p.y < 0 ? null : pointAt(trace, p.x, p.y);
      return;
    }
    if (!drag.moved && Math.hypot(p.x - drag.x, p.y - drag.y) < CLICK) return;
    drag.moved = true;
    trace.hover.value = trace.point.value = null;
    if (drag.what === "pan") {
      const ps = ((drag.x - p.x) / width()) * drag.view.span;
      trace.show({ t0: drag.view.t0 + BigInt(Math.round(ps)), span: drag.view.span });
      trace.scrollBy(drag.top + drag.y - p.y - trace.scrollTop.peek());
    } else if (drag.what === "measure") {
      trace.measure(drag.from, snap(trace, p.x, p.y));
    } else {
      trace.dragging.value = areaOf(p, drag);
    }
  };

  const up = (e: PointerEvent): void => {
    const p = where(e);
    touches.delete(e.pointerId);
    const d = drag;
    const left = [...touches][0];
    if (left && d) return void (drag = held(left[0], left[1], "pan", true)); // of two fingers one stays: it goes on from here
    if (!d || d.id !== e.pointerId) return;
    drag = null;
    const area = trace.dragging.peek();
    trace.dragging.value = null;
    if (!d.moved) click(p);
    else if (area && d.what === "select") trace.setArea(area);
    else if (area && d.what === "zoom") trace.zoomTo(area);
  };

  const click = (p: Pointer): void => {
    const hit = p.y < 0 ? null : hitAt(trace, p.x, p.y);
    if (hit) trace.choose(hit);
    else if (trace.event.id.peek()) trace.deselect();
    else if (trace.measuredHere()) trace.measure(0n, 0n);
    else if (trace.sum.area.peek()) trace.setArea(null);
  };

  const cancel = (e: PointerEvent): void => {
    touches.delete(e.pointerId);
    drag = null;
    trace.dragging.value = null;
  };

  const doubleClick = (e: MouseEvent): void => {
    const p = where(e);
    const hit = p.y < 0 ? null : hitAt(trace, p.x, p.y);
    if (hit) trace.fit();
  };

  const wheel = (e: WheelEvent): void => {
    e.preventDefault();
    const unit = e.deltaMode === 1 ? 16 : e.deltaMode === 2 ? 400 : 1;
    const [dx, dy] = [e.deltaX * unit, e.deltaY * unit];
    if (e.altKey) return trace.scrollBy(dy);
    if (e.shiftKey) return trace.pan(((dx || dy) / width()) * 1);
    if (Math.abs(dx) > Math.abs(dy) * 1.5) return trace.pan(dx / width());
    const speed = e.ctrlKey ? 0.01 : 0.0022; // a pinch on a touch pad comes as small Ctrl + wheel
    trace.zoom(Math.exp(Math.max(-1, Math.min(1, dy * speed))), where(e).x / width());
  };

  const leave = (): void => {
    at(null);
    if (!drag) trace.hover.value = trace.point.value = null;
  };

  canvas.addEventListener("pointerdown", down);
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", cancel);
  canvas.addEventListener("pointerleave", leave);
  canvas.addEventListener("dblclick", doubleClick);
  canvas.addEventListener("wheel", wheel, { passive: false });
  return () => {
    canvas.removeEventListener("pointerdown", down);
    canvas.removeEventListener("pointermove", move);
    canvas.removeEventListener("pointerup", up);
    canvas.removeEventListener("pointercancel", cancel);
    canvas.removeEventListener("pointerleave", leave);
    canvas.removeEventListener("dblclick", doubleClick);
    canvas.removeEventListener("wheel", wheel);
  };
}
