// The address follows the timeline: an entry of its own for a discrete step, else the present one
// is rewritten once things are quiet.
import { effect, untracked } from "@preact/signals";
import { go, here, rewritten } from "../../model/location";
import { rangeQuery } from "../../model/toolurl";
import { formatTrace, parseTrace } from "../../model/url";
import type { Trace } from "./trace";

/** What was chosen for all pages (an op, a part of the run) stays so, though the timeline itself needs it not. */
export function handedOn(...without: string[]): string {
  const p = new URLSearchParams(window.location.search);
  return ["op", "program", "range", "steps", "step_marker", "base"].filter((k) => !without.includes(k)).map((k) => (p.get(k) ? `&${k}=${encodeURIComponent(p.get(k)!)}` : "")).join("");
}

/** What all pages of the run are about from now on: START..END, or "" for the whole of it. */
export function choosePart(trace: Trace, range: string): void {
  go(`${trace.api.root}trace${formatTrace(trace.url())}${handedOn("range", "steps")}${rangeQuery({ range, steps: "" })}`);
  trace.say(range ? "All pages of the run are about this time now." : "The pages are about the whole run again.");
}

const QUIET = 200; // ms; browsers refuse more than some hundred rewrites in half a minute

export function syncAddress(trace: Trace): () => void {
  let written = window.location.search;
  let asked = written; // what was to be written: the browser escapes an apostrophe, which is no news
  let pending: string | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const replace = (): void => {
    clearTimeout(timer);
    if (pending === null) return;
    window.history.replaceState(null, "", (asked = pending));
    written = window.location.search;
    pending = null;
    rewritten();
  };

  const stopWriting = effect(() => {
    const next = formatTrace(trace.url()) + handedOn();
    if (next === (pending ?? asked)) return;
    if (trace.step) {
      replace();
      window.history.pushState(null, "", (asked = next));
      written = window.location.search;
      rewritten();
    } else {
      pending = next;
      clearTimeout(timer);
      timer = setTimeout(replace, QUIET);
    }
    trace.step = false;
  });

  const stopReading = effect(() => {
    const { search, page } = here.value;
    if (search === written || window.location.search !== search) return;
    const url = parseTrace(search);
    // Another page, or host: this timeline is about to go.
    if (page !== "trace" || url.run !== trace.who.run || url.host !== trace.who.host) return;
    clearTimeout(timer);
    pending = null;
    written = asked = search;
    untracked(() => trace.apply(url));
  });

  return () => {
    if (window.location.search === written) replace();
    clearTimeout(timer); // another page's address is not ours
    stopWriting();
    stopReading();
  };
}
