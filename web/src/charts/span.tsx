// Choosing several neighbouring columns of a chart: by a drag, or by Shift, arrow keys and Enter.
import { useSignal, type Signal } from "@preact/signals";
import { useRef } from "preact/hooks";

export interface Span {
  from: Signal<number>; // < 0: nothing is being chosen
  to: Signal<number>;
  down: (e: PointerEvent, column: number) => void;
  extend: (column: number) => void;
  up: () => void;
  cancel: () => void;
  /** Whether the click that follows belongs to a drag. */
  took: () => boolean;
  /** True when the key was about the choice. */
  key: (e: KeyboardEvent, column: number) => boolean;
}

export function useSpan(done: ((a: number, b: number) => void) | undefined): Span {
  const from = useSignal(-1);
  const to = useSignal(-1);
  const dragged = useRef(false);
  const grip = useRef<() => void>(() => undefined);
  const byKeys = useRef(false);
  const cancel = (): void => {
    from.value = to.value = -1;
    byKeys.current = false;
  };
  const finish = (): void => {
    const [a, b] = [from.peek(), to.peek()];
    cancel();
    if (a >= 0 && b >= 0) done?.(a, b);
  };
  return {
    from, to, cancel,
    down: (e, column) => {
      dragged.current = false;
      if (!done || e.button !== 0 || column < 0) return;
      // A click belongs to what is below it: only a drag takes the pointer for the chart.
      const chart = e.currentTarget as Element;
      grip.current = () => chart.setPointerCapture(e.pointerId);
      window.addEventListener("pointerup", () => !dragged.current && !byKeys.current && cancel(), { once: true });
      from.value = column;
    },
    extend: (column) => {
      if (from.peek() < 0 || column < 0) return;
      if (column !== from.peek() && !dragged.current && !byKeys.current) grip.current();
      if (column !== from.peek()) dragged.current = true;
      if (dragged.current) to.value = column;
    },
    up: () => (byKeys.current ? undefined : dragged.current ? finish() : cancel()),
    took: () => dragged.current,
    key: (e, column) => {
      if (!done) return false;
      if (e.shiftKey && from.peek() < 0 && /^Arrow(Left|Right)$/.test(e.key) && column >= 0) {
        byKeys.current = true;
        from.value = to.value = column;
        return false; // the chart moves its cursor, which extends the choice
      }
      if (!byKeys.current) return false;
      if (e.key === "Enter") return finish(), true;
      if (e.key === "Escape" || (!e.shiftKey && e.key.startsWith("Arrow"))) cancel();
      return false;
    },
  };
}

export function SpanBand({ a, b, pad, top, tall }: { a: number; b: number; pad: number; top: number; tall: number }) {
  const left = Math.min(a, b) - pad;
  return <rect class="span-band" x={left} y={top} width={Math.max(2, Math.abs(a - b) + 2 * pad)} height={tall} />;
}
