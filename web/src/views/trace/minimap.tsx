// How busy the session is over its whole length, with the view in it.
import { effect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { decodeWindow } from "../../api/window";
import { drawMinimap } from "../../draw/minimap";
import { readTheme } from "../../draw/theme";
import { busyColumns } from "../../layout/minimap";
import { dark } from "../../model/theme";
import { formatRows } from "../../model/url";
import { RowFinder } from "./finder";
import type { Trace } from "./trace";

const COLUMNS = 512;
const LINES = 24; // of the busiest planes: enough to see where the work is

function linesToSum(trace: Trace): number[] {
  const planes = trace.tracks.peek()?.planes.filter((p) => p.events > 0) ?? [];
  const kind = planes.some((p) => p.kind === "device") ? "device" : planes[0]?.kind;
  return planes
    .filter((p) => p.kind === kind)
    .flatMap((p) => p.lines)
    .filter((l) => l.events > 0 && !l.derived)
    .sort((a, b) => b.events - a.events)
    .slice(0, LINES)
    .map((l) => l.line);
}

export function Minimap({ trace }: { trace: Trace }) {
  const canvas = useRef<HTMLCanvasElement>(null);

  useEffect(() => {
    const el = canvas.current!;
    let columns = new Float64Array(COLUMNS);
    let abort = new AbortController();

    const load = async (): Promise<void> => {
      abort.abort();
      abort = new AbortController();
      const lines = linesToSum(trace);
      const s = trace.session.peek();
      if (lines.length === 0) return;
      try {
        const body = await trace.api.bytes(
          "window", { ...trace.who, t0: s.t0, t1: s.t1, px: COLUMNS, rows: formatRows(lines), max_bytes: 131072 }, abort.signal);
        columns = busyColumns(decodeWindow(body), COLUMNS);
        draw();
      } catch {
        // the map is an extra: the timeline says what is wrong
      }
    };
    const draw = (): void => {
      const { scale } = trace.size.peek();
      drawMinimap(el, columns, trace.shown.peek(), trace.session.peek(), scale, readTheme());
    };
    const unload = effect(() => {
      if (trace.tracks.value && !trace.tracks.value.loading) void load();
    });
    const undraw = effect(() => {
      void [trace.shown.value, trace.session.value, trace.size.value, dark.value];
      draw();
    });

    const timeOf = (e: PointerEvent): bigint => {
      const box = el.getBoundingClientRect();
      const s = trace.session.peek();
      return s.t0 + BigInt(Math.round(((e.clientX - box.left) / box.width) * Number(s.t1 - s.t0)));
    };
    const down = (e: PointerEvent): void => {
      el.setPointerCapture(e.pointerId);
      const from = timeOf(e);
      const v = trace.view.peek();
      const inside = from >= v.t0 && from <= v.t0 + BigInt(Math.round(v.span));
      const hold = inside && trace.chosen.peek() ? from - v.t0 : BigInt(Math.round(v.span / 2));
      const paint = !inside || !trace.chosen.peek();
      const move = (m: PointerEvent): void => {
        const t = timeOf(m);
        if (!paint) return trace.show({ t0: t - hold, span: v.span });
        const [a, b] = t < from ? [t, from] : [from, t];
        if (Number(b - a) > v.span / 1e4) trace.show({ t0: a, span: Number(b - a) });
      };
      el.onpointermove = move;
      el.onpointerup = (u) => {
        el.onpointermove = null;
        if (paint && timeOf(u) === from) trace.show({ t0: from - hold, span: v.span });
      };
    };
    el.addEventListener("pointerdown", down);
    return () => {
      abort.abort();
      unload();
      undraw();
      el.removeEventListener("pointerdown", down);
    };
  }, [trace]);

  return (
    <div class="minimap">
      <RowFinder trace={trace} />
      <canvas ref={canvas} aria-hidden="true" title="The whole session: drag to choose what is in view" />
    </div>
  );
}
