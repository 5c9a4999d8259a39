// Ctrl+K: everything by name. Tools of the run, runs of the project.
import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { Api } from "../api/client";
import { asReport, type Report } from "../api/report";
import type { Runs } from "../api/types";
import { go, here } from "../model/location";
import { cycleTheme } from "../model/theme";
import { opColumns, opOf, type OpId } from "../model/ops";
import { compareHref, elsewhere, parseTool, toolHref } from "../model/toolurl";
import { tools } from "../model/tools";
import { Icon, type IconName } from "../widgets/icon";
import { capturesHref, currentRun } from "./rail";
import { chooseFile } from "./upload";
import { toolsOf } from "./runtools";

interface Command {
  label: string;
  hint: string;
  icon: IconName;
  off?: boolean;
  act: () => void;
}

function staticCommands(): Command[] {
  const { root, search } = here.peek();
  const run = currentRun();
  const states = run ? toolsOf(root, run).value : null;
  const list: Command[] = run
    ? tools.map((t) => {
        const s = states?.get(t.id);
        return {
          label: t.label, hint: s && !s.available ? s.reason ?? "no data" : t.question, icon: t.icon,
          off: s ? !s.available : false, act: () => go(toolHref(root, t.id, parseTool(search))),
        };
      })
    : [];
  list.push(
    { label: "All runs", hint: "", icon: "runs", act: () => go(root) },
    { label: "Compare two runs", hint: "", icon: "compare", act: () => go(compareHref(root, run, search)) },
    { label: "Captures", hint: "Profile what runs now", icon: "camera", act: () => go(capturesHref(root)) },
    { label: "Admin", hint: "How this instance does", icon: "admin", act: () => go(`${root}admin`) },
    { label: "Open a file", hint: "Upload a profile from this machine", icon: "upload", act: chooseFile },
    { label: "Theme: system, light, dark", hint: "T", icon: "auto", act: cycleTheme },
  );
  return list;
}

/** Every word somewhere; where it begins a word counts more. */
function score(text: string, words: string[]): number {
  const low = text.toLowerCase();
  let total = 0;
  for (const w of words) {
    const at = low.indexOf(w);
    if (at < 0) return -1;
    total += at === 0 ? 3 : /\W/.test(low[at - 1]!) ? 2 : 1;
  }
  return total;
}

const OPS = 8;
const LOOK = 60;

/** Ops of the run of the page: those of that name, then those that begin so, then by time. */
async function findOps(root: string, text: string, signal: AbortSignal): Promise<OpId[]> {
  const run = currentRun();
  if (!run || text.length < 2) return [];
  const got = asReport(await new Api(root).json<Partial<Report>>("report", { run, tool: "hlo_stats", table: "ops", filter: text, limit: LOOK }, signal));
  const t = got.tables[0];
  if (!t) return [];
  const low = text.toLowerCase();
  const rank = (id: OpId): number => {
    const at = id.op.toLowerCase().indexOf(low);
    return at < 0 ? 3 : at > 0 ? 2 : id.op.length > low.length ? 1 : 0;
  };
  const ids = t.rows.map((row) => opOf(row, opColumns(t))).filter((id) => id.op !== "");
  return ids.sort((a, b) => rank(a) - rank(b)).slice(0, OPS);
}

export function Palette({ close }: { close: () => void }) {
  const box = useRef<HTMLDialogElement>(null);
  const text = useSignal("");
  const at = useSignal(0);
  const runs = useSignal<string[]>([]);
  const ops = useSignal<OpId[]>([]);
  const { root } = here.value;

  useLayoutEffect(() => box.current?.showModal(), []);
  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(() => {
      new Api(root).json<Runs>("runs", { limit: 12, q: text.value || undefined }, abort.signal).then(
        (got) => (runs.value = got.runs.filter((r) => r.state === "ready").map((r) => r.run)),
        () => undefined, // the tools are still there
      );
      findOps(root, text.value.trim(), abort.signal).then((got) => (ops.value = got), () => undefined);
    }, 100);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text.value]);

  const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = staticCommands()
    .map((c) => ({ c, n: Math.max(score(c.label, words), score(`${c.label} ${c.hint}`, words) - 1) }))
    .filter((x) => words.length === 0 || x.n >= 0)
    .sort((a, b) => b.n - a.n)
    .map((x) => x.c);
  const all: Command[] = [
    ...found,
    ...ops.value.map((id): Command => ({
      label: id.op, hint: "op of this run", icon: "table", act: () => go(`${root}hlo_stats${elsewhere(parseTool(here.peek().search), id)}`),
    })),
    ...runs.value.map((run): Command => ({
      label: run, hint: "run", icon: "runs", act: () => go(`${root}overview_page?run=${encodeURIComponent(run)}`),
    })),
  ].slice(0, 40);
  const place = Math.min(at.value, Math.max(0, all.length - 1));

  const choose = (c: Command | undefined): void => {
    if (!c) return;
    box.current?.close();
    c.act();
  };
  const keys = (e: KeyboardEvent): void => {
    const step = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
    if (step) {
      e.preventDefault();
      at.value = (place + step + all.length) % Math.max(1, all.length);
      box.current?.querySelectorAll("li")[at.value]?.scrollIntoView({ block: "nearest" });
    } else if (e.key === "Enter") {
      e.preventDefault();
      choose(all[place]);
    }
  };
  return (
    <dialog ref={box} class="palette" aria-label="Palette" onClose={close} onClick={(e) => e.target === box.current && box.current?.close()}>
      <div class="palette-field">
        <Icon name="search" />
        <input
          type="text" role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant={`palette-${place}`}
          aria-label="Go to a tool, an op or a run" placeholder="Go to a tool, an op or a run" spellcheck={false} autocomplete="off" autofocus
          value={text.value} onKeyDown={keys}
          onInput={(e) => {
            text.value = e.currentTarget.value;
            at.value = 0;
          }}
        />
      </div>
      <ul id="palette-list" role="listbox" aria-label="Found">
        {all.map((c, i) => (
          <li
            key={`${c.label}${i}`} id={`palette-${i}`} role="option" aria-selected={i === place} class={c.off ? "off" : ""}
            onClick={() => choose(c)} onPointerMove={() => (at.value = i)}
          >
            <Icon name={c.icon} /> <span class="palette-label">{c.label}</span> <span class="palette-hint">{c.hint}</span>
          </li>
        ))}
        {all.length === 0 && <li class="none" role="presentation">Nothing is called so.</li>}
      </ul>
    </dialog>
  );
}
