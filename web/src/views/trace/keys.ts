// Keys of the timeline. A held key moves smoothly; a tap moves a step.
import { cycleTheme } from "../../model/theme";
import { modes } from "../../model/url";
import { isTyping } from "../../shell/typing";
import { rowAt } from "./picture";
import type { Trace } from "./trace";

export const help: { keys: string; what: string }[][] = [
  [
    { keys: "W S", what: "zoom in, out" },
    { keys: "A D ← →", what: "move left, right" },
    { keys: "↑ ↓", what: "scroll rows" },
    { keys: "Shift", what: "with these: four times as far" },
    { keys: "F", what: "fit the selection" },
    { keys: "0 Home", what: "whole session" },
    { keys: "wheel", what: "zoom at the pointer; Shift: move; Alt: scroll rows" },
    { keys: "drag", what: "move; with Shift: select an area; on the ruler: zoom" },
    { keys: "click", what: "choose an event; twice: fit it" },
    { keys: "fingers", what: "one moves, two zoom; a tap chooses" },
    { keys: "T", what: "theme: system, light, dark" },
    { keys: "Esc", what: "one level back" },
    { keys: "G", what: "then a letter: a page of this run" },
    { keys: "Ctrl + K", what: "pages, ops and runs by name" },
    { keys: "?", what: "this help" },
  ],
  [
    { keys: ". ,", what: "next, previous event on the row" },
    { keys: "J K", what: "event on the row below, above" },
    { keys: "/ L", what: "search events; find rows" },
    { keys: "] [", what: "next, previous hit" },
    { keys: "R", what: "area from the selected event" },
    { keys: "1 2 3 4", what: "drag selects, moves, zooms, measures" },
    { keys: "P H", what: "pin, hide the row under the pointer, or of the event" },
    { keys: "M", what: "bookmark at the pointer" },
    { keys: "E N", what: "all rows as a table; the events of a row" },
    { keys: "V I", what: "all devices of the run; suggestions and late steps" },
    { keys: "Q", what: "show or hide the details" },
    { keys: "C", what: "fold or unfold all groups" },
  ],
];

const SMOOTH_AFTER = 140; // ms
const moves: Record<string, { zoom?: number; pan?: number; scroll?: number }> = {
  w: { zoom: -1 }, s: { zoom: 1 },
  a: { pan: -1 }, d: { pan: 1 }, arrowleft: { pan: -1 }, arrowright: { pan: 1 },
  arrowup: { scroll: -1 }, arrowdown: { scroll: 1 },
};

/** What a key does: times as much in view, so much of the view aside, pixels down. */
export function moveOf(key: string, amount: number, shift: boolean): { zoom: number; pan: number; scroll: number } | null {
  const m = moves[key];
  const n = amount * (shift ? 4 : 1);
  return m ? { zoom: m.zoom ? Math.exp(m.zoom * n) : 0, pan: (m.pan ?? 0) * n, scroll: (m.scroll ?? 0) * n * 400 } : null;
}

export interface KeyTargets {
  trace: () => Trace; // the one that was used last
  focusSearch: () => void;
  toggleHelp: () => void;
  pointerShare: () => number; // where zoom has its centre, 0 … 1
  pointer: () => { x: number; y: number } | null; // in the rows' part
}

function discrete({ trace, focusSearch, toggleHelp, pointer, pointerShare }: KeyTargets): Record<string, () => void> {
  const onRow = (act: (line: number) => void) => (): void => {
    const p = pointer();
    const line = (p && rowAt(trace(), p.y)?.line?.line) ?? trace().event.mark.peek()?.line;
    if (line === undefined) trace().say("Point at a row, or choose an event on it.");
    else act(line);
  };
  return {
    p: onRow((line) => trace().togglePin(line)),
    h: onRow((line) => trace().hideLine(line)),
    e: () => trace().chooseTab("rows"),
    n: () => trace().listEvents(null),
    m: () => trace().bookmark(pointer() ? pointerShare() : null),
    f: () => trace().fit(),
    "0": () => trace().whole(),
    home: () => trace().whole(),
    ".": () => void trace().neighbour(1),
    ",": () => void trace().neighbour(-1),
    j: () => trace().otherRow(1),
    k: () => trace().otherRow(-1),
    "]": () => void trace().stepHit(1),
    "[": () => void trace().stepHit(-1),
    "/": focusSearch,
    l: () => document.querySelector<HTMLInputElement>(".finder input")?.select(),
    "?": toggleHelp,
    r: () => trace().areaFromEvent(),
    ...Object.fromEntries(modes.map((mode, i) => [String(i + 1), () => trace().setMode(mode)])),
    q: () => trace().chooseTab(trace().dock.peek() ? null : trace().tab.peek()),
    v: () => trace().toggleStrip(),
    i: () => trace().toggleTips(),
    c: () => trace().foldAll(trace().rows.peek().rows.some((r) => !r.line && !r.folded)),
    t: cycleTheme,
    escape: () => trace().back(),
  };
}

export function listenKeys(targets: KeyTargets): () => void {
  const { trace } = targets;
  const act = discrete(targets);
  const held = new Map<string, number>(); // key -> since
  let frame = 0;
  let last = 0;

  const move = (key: string, amount: number, shift: boolean): void => {
    const m = moveOf(key, amount, shift);
    if (m?.zoom) trace().zoom(m.zoom, targets.pointerShare());
    if (m?.pan) trace().pan(m.pan);
    if (m?.scroll) trace().scrollBy(m.scroll);
  };

  let shifted = false;
  const tick = (now: number): void => {
    const dt = Math.min(0.05, (now - last) / 1000);
    last = now;
    for (const [key, since] of held) if (now - since > SMOOTH_AFTER) move(key, dt * 1.6, shifted);
    frame = held.size ? requestAnimationFrame(tick) : 0;
  };

  const down = (e: KeyboardEvent): void => {
    shifted = e.shiftKey;
    if (e.ctrlKey || e.metaKey || e.altKey || isTyping(e) || document.querySelector("dialog[open]")) return;
    const key = e.key.toLowerCase();
    if (moves[key]) {
      if (key.startsWith("arrow") && e.target instanceof Element && e.target.closest(".dock")) return;
      e.preventDefault();
      if (e.repeat || held.has(key)) return;
      move(key, moves[key]!.pan ? 0.1 : 0.25, e.shiftKey);
      held.set(key, (last = performance.now()));
      if (!frame) frame = requestAnimationFrame(tick);
    } else if (act[key]) {
      e.preventDefault();
      act[key]!();
    }
  };
  const up = (e: KeyboardEvent): void => {
    shifted = e.shiftKey;
    held.delete(e.key.toLowerCase());
  };
  const blur = (): void => held.clear();

  document.addEventListener("keydown", down);
  document.addEventListener("keyup", up);
  window.addEventListener("blur", blur);
  return () => {
    cancelAnimationFrame(frame);
    document.removeEventListener("keydown", down);
    document.removeEventListener("keyup", up);
    window.removeEventListener("blur", blur);
  };
}
