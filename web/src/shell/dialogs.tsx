// What keys do on every page: G and a letter goes to a tool, Ctrl+K opens the palette, ? the help.
// The timeline has keys and a help of its own; G and Ctrl+K work there too.
import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { go, here } from "../model/location";
import { cycleTheme } from "../model/theme";
import { compareHref, parseTool, toolHref } from "../model/toolurl";
import { TIMELINE, tools } from "../model/tools";
import { Icon } from "../widgets/icon";
import { Palette } from "./palette";
import { capturesHref, currentRun } from "./rail";
import { isTyping } from "./typing";

export const dialog = signal<"" | "palette" | "help">("");
const pending = signal(false); // after G

function goByKey(key: string): boolean {
  const { root, search } = here.peek();
  const run = currentRun();
  if (key === "a") return go(root), true;
  if (key === "l") return go(capturesHref(root)), true;
  if (key === "d") return go(`${root}admin`), true;
  if (key === "v") return go(compareHref(root, run, search)), true;
  const tool = tools.find((t) => t.key === key);
  if (!tool || !run) return false;
  go(toolHref(root, tool.id, parseTool(search)));
  return true;
}

const GO_MS = 1500;

export function listenGlobalKeys(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = (e: KeyboardEvent): void => {
    e.preventDefault();
    e.stopImmediatePropagation();
  };
  const down = (e: KeyboardEvent): void => {
    const key = e.key.toLowerCase();
    if (key === "k" && (e.ctrlKey || e.metaKey) && !e.shiftKey && !e.altKey) {
      stop(e);
      dialog.value = dialog.peek() === "palette" ? "" : "palette";
      return;
    }
    if (e.ctrlKey || e.metaKey || e.altKey || isTyping(e) || document.querySelector("dialog[open]")) return;
    if (pending.peek()) {
      clearTimeout(timer);
      pending.value = false;
      if (key !== "shift" && goByKey(key)) stop(e);
      return;
    }
    if (key === "g") {
      stop(e);
      pending.value = true;
      timer = setTimeout(() => (pending.value = false), GO_MS);
    } else if (here.peek().page !== TIMELINE) {
      if (key === "?") (stop(e), (dialog.value = "help"));
      else if (key === "t") cycleTheme();
      else if (key === "/") focusFilter(e);
    }
  };
  document.addEventListener("keydown", down, true);
  return () => document.removeEventListener("keydown", down, true);
}

/** The first filter or search field of the page. */
function focusFilter(e: KeyboardEvent): void {
  const field = document.querySelector<HTMLInputElement>(".view input[data-filter]");
  if (!field) return;
  e.preventDefault();
  field.select();
}

export function Dialogs() {
  return (
    <>
      {dialog.value === "palette" && <Palette close={() => (dialog.value = "")} />}
      {dialog.value === "help" && <Help close={() => (dialog.value = "")} />}
      {pending.value && <GoHint />}
    </>
  );
}

function GoHint() {
  const run = currentRun();
  return (
    <div class="go-hint" role="status">
      <b>Go to</b>
      <span><kbd>A</kbd> runs</span>
      <span><kbd>V</kbd> compare</span>
      <span><kbd>L</kbd> captures</span>
      <span><kbd>D</kbd> admin</span>
      {run && tools.map((t) => <span key={t.id}><kbd>{t.key.toUpperCase()}</kbd> {t.label}</span>)}
    </div>
  );
}

const keys: { keys: string; what: string }[] = [
  { keys: "G then a letter", what: "go to a tool; the letters appear after G" },
  { keys: "Ctrl + K", what: "palette: tools, ops and runs by name" },
  { keys: "/", what: "filter the table" },
  { keys: "T", what: "theme: system, light, dark" },
  { keys: "↑ ↓", what: "in a table: the row above, below" },
  { keys: "Enter", what: "in a table: choose the row's op, everywhere" },
  { keys: "Shift + → ←", what: "at a column's head: wider, narrower" },
  { keys: "→ ←", what: "in a tree: open, close; in a chart: next, previous point" },
  { keys: "Esc", what: "one level back" },
  { keys: "?", what: "this help" },
];

const grammar: { keys: string; what: string }[] = [
  { keys: "fusion", what: "rows with this word, anywhere" },
  { keys: "-copy", what: "rows without it" },
  { keys: "category:loop", what: "the word in one column" },
  { keys: "self>10us", what: "amounts, with units: ns us ms s, KiB MiB GiB, %" },
  { keys: "\"two words\"", what: "as one" },
  { keys: "/core_[0-3]/", what: "a regular expression; also column:/…/" },
];

export function Help({ close }: { close: () => void }) {
  const box = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => box.current?.showModal(), []);
  const row = (k: { keys: string; what: string }) => (
    <div key={k.keys}>
      <dt><code>{k.keys}</code></dt>
      <dd>{k.what}</dd>
    </div>
  );
  return (
    <dialog ref={box} class="help" aria-label="Help" onClose={close} onClick={(e) => e.target === box.current && box.current?.close()}>
      <div class="help-head">
        <h2>Keys and filters</h2>
        <button type="button" class="tool" aria-label="Close" onClick={() => box.current?.close()}><Icon name="close" /></button>
      </div>
      <div class="help-columns">
        <dl>{keys.map(row)}</dl>
        <dl>{grammar.map(row)}</dl>
      </div>
      <p class="none">An op that was chosen stays chosen on every page of the run. The address holds the whole state: copy it and the other person sees what you see.</p>
    </dialog>
  );
}
