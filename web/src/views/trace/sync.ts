// The address follows the timeline: an entry of its own for a discrete step, else the present one
// is rewritten once things are quiet.
import { effect } from "@preact/signals";
import { here } from "../../model/location";
import { formatTrace, parseTrace } from "../../model/url";
import type { Trace } from "./trace";

/** The op that was chosen on another page stays chosen, though the timeline itself needs it not. */
function chosenOp(): string {
  const p = new URLSearchParams(window.location.search);
  return ["op", "program"].map((k) => (p.get(k) ? `&${k}=${encodeURIComponent(p.get(k)!)}` : "")).join("");
}

const QUIET = 200; // ms; browsers refuse more than some hundred rewrites in half a minute

export function syncAddress(trace: Trace): () => void {
  let written = window.location.search;
  let pending: string | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const replace = (): void => {
    clearTimeout(timer);
    if (pending !== null) window.history.replaceState(null, "", (written = pending));
    pending = null;
  };

  const stopWriting = effect(() => {
    const next = formatTrace(trace.url()) + chosenOp();
    if (next === (pending ?? written)) return;
    if (trace.step) {
      replace();
      window.history.pushState(null, "", (written = next));
    } else {
      pending = next;
      clearTimeout(timer);
      timer = setTimeout(replace, QUIET);
    }
    trace.step = false;
  });

  const stopReading = effect(() => {
    const { search } = here.value;
    if (search === written || window.location.search !== search) return;
    clearTimeout(timer);
    pending = null;
    written = search;
    trace.apply(parseTrace(search));
  });

  return () => {
    replace();
    stopWriting();
    stopReading();
  };
}
