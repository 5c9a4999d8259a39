// The rows: labels at the left as elements, the rest on one canvas.
import { effect, untracked, useComputed, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { painterFor } from "../../draw/painter";
import type { Scene } from "../../draw/scene";
import { rulerHeight } from "../../draw/timeline";
import { readTheme } from "../../draw/theme";
import { layoutRuler } from "../../layout/ruler";
import { moreHeight } from "../../layout/rows";
import { unit } from "../../layout/unit";
import { dark, palette } from "../../model/theme";
import type { Area } from "../../model/url";
import { linesOf } from "./area";
import { Labels } from "./labels";
import { arrows, boxOf, sceneRows } from "./picture";
import { listenPointer, type Pointer } from "./pointer";
import { Tip } from "./tip";
import type { Trace } from "./trace";

function areaScene(a: Area | null): Scene["area"] {
  return a && { t0: a.t0, t1: a.t1, lines: linesOf(a) };
}

/** Another screen, or zoom, may have other pixels in a room of the same size. */
function onScale(changed: () => void): () => void {
  let now: MediaQueryList | null = null;
  const listen = (): void => {
    now = window.matchMedia(`(resolution: ${window.devicePixelRatio}dppx)`);
    now.addEventListener("change", again, { once: true });
  };
  const again = (): void => {
    changed();
    listen();
  };
  listen();
  return () => now?.removeEventListener("change", again);
}

/** focus: keys go to this one when it comes up. */
export function Stage({ trace, pointer, focus }: { trace: Trace; pointer: { value: Pointer | null; of?: Trace }; focus: boolean }) {
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const cursor = useSignal<Pointer | null>(null);
  const canvases = useSignal(0); // a canvas that was given to a worker that broke is lost
  const height = useComputed(() => trace.rows.value.height);

  useEffect(() => {
    const el = canvas.current!;
    let theme = readTheme();
    let frame = 0;
    const soon = (): void => void (frame ||= requestAnimationFrame(draw));
    const painter = painterFor(el, trace.slabs, soon, () => canvases.value++);

    const draw = (): void => {
      frame = 0;
      if ((window.devicePixelRatio || 1) !== trace.size.peek().scale) measure(); // not every browser says when
      const size = trace.size.peek();
      if (size.width === 0) return;
      const view = trace.view.peek();
      const drawn = painter.draw({
        view, ...size, height: size.height + rulerHeight(), unit: unit(), theme,
        scrollTop: trace.scrollTop.peek(),
        rows: sceneRows(trace),
        ruler: layoutRuler(view, size.width),
        session: trace.session.peek(),
        selected: boxOf(trace, trace.event.mark.peek()),
        hovered: boxOf(trace, trace.hover.peek()?.mark ?? null),
        area: areaScene(trace.dragging.peek() ?? trace.sum.area.peek()),
        arrows: arrows(trace),
        measured: trace.measuredHere(),
        marks: trace.marksHere(),
        cursorX: cursor.peek()?.x ?? null,
        lasting: trace.lasting.peek(),
      });
      if (drawn) trace.shown.value = view;
    };

    const unstyle = effect(() => {
      void [(trace.lead ?? trace).search.text.value, trace.off.value, palette.value];
      painter.restyle();
    });
    // Whatever the picture depends on; at most one drawing a frame.
    const undraw = effect(() => {
      void [
        trace.view.value, trace.size.value, trace.inSight.value, trace.scrollTop.value, trace.fetcher.version.value, trace.curves.version.value,
        trace.event.mark.value, trace.event.details.value, trace.hover.value, trace.sum.area.value, trace.dragging.value,
        (trace.lead ?? trace).search.text.value, trace.off.value, palette.value, cursor.value, trace.measuredHere(), trace.marksHere(),
      ];
      if (dark.value !== theme.dark) theme = readTheme();
      soon();
    });

    const room = el.parentElement!; // stays when the canvas is replaced
    const measure = (): void => {
      const r = room.getBoundingClientRect();
      const was = trace.size.peek();
      const next = { width: Math.floor(r.width), height: Math.max(0, Math.floor(r.height) - rulerHeight()), scale: window.devicePixelRatio || 1 };
      if (was.width === next.width && was.height === next.height && was.scale === next.scale) return;
      trace.resize(next);
    };
    const observer = new ResizeObserver(measure);
    observer.observe(room);
    const unsize = effect(() => {
      void unit(); // the ruler is as tall as its text asks for
      untracked(measure);
      soon();
    });
    const unscale = onScale(measure);
    // What was drawn while nobody looked, or before the machine slept, may be lost.
    const woken = (): void => {
      if (document.visibilityState !== "visible") return;
      measure();
      soon();
    };
    document.addEventListener("visibilitychange", woken);
    window.addEventListener("pageshow", woken);
    el.addEventListener("contextrestored", soon);

    const place = (): void => {
      const y = trace.scrollTop.peek();
      if (scroller.current && Math.abs(scroller.current.scrollTop - y) >= 1) scroller.current.scrollTop = y;
    };
    const unscroll = effect(() => {
      void [trace.rows.value, trace.scrollTop.value];
      place();
      requestAnimationFrame(place); // once more when there is room for rows that are new
    });
    const unpoint = listenPointer(el, trace, (p) => {
      cursor.value = p;
      pointer.value = p;
      pointer.of = trace;
    });
    // A timeline beside may come later, when somebody types elsewhere.
    if (focus && (!trace.lead || document.activeElement === document.body)) el.focus({ preventScroll: true });
    return () => {
      cancelAnimationFrame(frame);
      observer.disconnect();
      unscale();
      unsize();
      document.removeEventListener("visibilitychange", woken);
      window.removeEventListener("pageshow", woken);
      el.removeEventListener("contextrestored", soon);
      painter.stop();
      unstyle();
      undraw();
      unscroll();
      unpoint();
    };
  }, [trace, canvases.value]);

  return (
    <div
      class="scroller"
      ref={scroller}
      tabIndex={-1}
      onScroll={(e) => (trace.scrollTop.value = Math.round(e.currentTarget.scrollTop))}
    >
      <div class="spacer" style={{ height: `${height.value + rulerHeight() + (trace.tracks.value?.next == null ? 0 : moreHeight())}px` }}>
        <div class="stage">
          <Labels trace={trace} />
          <div class={`drawing mode-${trace.mode.value}`}>
            <canvas
              key={canvases.value}
              ref={canvas}
              tabIndex={0}
              role="application"
              aria-label="Timeline. Press question mark for keys."
              aria-describedby="said"
            />
            <Tip trace={trace} at={cursor} />
          </div>
        </div>
      </div>
    </div>
  );
}
