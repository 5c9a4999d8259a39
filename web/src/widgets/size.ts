// The width of an element, followed.
import { useSignal, type Signal } from "@preact/signals";
import type { RefObject } from "preact";
import { useLayoutEffect } from "preact/hooks";

export function useWidth(ref: RefObject<HTMLElement | null>, first = 600): Signal<number> {
  const width = useSignal(first);
  useLayoutEffect(() => {
    const at = ref.current;
    if (!at) return undefined;
    const look = (): void => {
      const now = Math.floor(at.clientWidth);
      if (now > 0 && now !== width.peek()) width.value = now;
    };
    look();
    const observer = new ResizeObserver(look);
    observer.observe(at);
    return () => observer.disconnect();
  }, []);
  return width;
}
