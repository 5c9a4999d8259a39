// Finds an op by part of its name or letters of it, while one types; with nothing typed, the ops that took longest.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Api } from "../../api/client";
import { asReport, type Cell, type Report, type Table } from "../../api/report";
import { here } from "../../model/location";
import { asNumber, show } from "../../model/units";
import { Icon } from "../../widgets/icon";
import type { PartProps } from "./parts";
import { programArgument } from "./modules";
import { set } from "./state";

const SHOWN = 12;
const PAUSE_MS = 150;

const matchesOf = (r: Report): Table | undefined => r.tables.find((t) => t.id === "matches");

export function OpFinder({ report, s }: Omit<PartProps, "root">) {
  const { root } = here.value;
  const box = useRef<HTMLInputElement>(null);
  const asked = s.args["node_name"] ?? "";
  const text = useSignal(asked);
  const open = useSignal(false);
  const at = useSignal(-1);
  const found = useSignal<Table | undefined>(undefined);
  useEffect(() => {
    text.value = asked;
  }, [asked]);
  const program: Record<string, string> = s.args["program_id"] ? { program_id: s.args["program_id"] } : s.args["module_name"] ? { module_name: s.args["module_name"] } : programArgument(s);
  const forget = (): void => {
    found.value = undefined;
    at.value = -1;
  };
  useEffect(() => {
    forget();
    if (!open.value) return undefined;
    const abort = new AbortController();
    const typed = text.value.trim();
    const timer = setTimeout(() => {
      new Api(root).json<Partial<Report>>("report", { run: s.run, tool: "graph_viewer", host: s.hosts, table: "matches", limit: SHOWN, nodes: 1, ...program, ...(typed ? { node_name: typed } : {}) }, abort.signal).then(
        (got) => {
          found.value = matchesOf(asReport(got));
          at.value = -1;
        },
        () => undefined, // nothing is offered then
      );
    }, PAUSE_MS);
    return () => (clearTimeout(timer), abort.abort());
  }, [text.value, open.value, s.run, s.hosts.join(), program["program_id"], program["module_name"]]);

  const t = open.value ? found.value ?? (text.value ? undefined : matchesOf(report)) : undefined;
  const rows = t?.rows.slice(0, SHOWN) ?? [];
  const get = (row: readonly Cell[], id: string): Cell => row[t!.columns.findIndex((c) => c.id === id)] ?? null;
  const choose = (name: string): void => {
    open.value = false;
    text.value = name;
    set({ op: "", args: { ...s.args, node_name: name, expand: "" } });
  };
  const keys = (e: KeyboardEvent): void => {
    const by = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
    if (by && !open.peek()) open.value = true;
    else if (by && rows.length) at.value = (at.peek() + by + rows.length + (at.peek() < 0 && by < 0 ? 1 : 0)) % rows.length;
    else if (e.key === "Enter") choose(rows[at.peek()] ? String(get(rows[at.peek()]!, "op")) : text.peek().trim());
    else if (e.key === "Escape" && open.peek()) open.value = false;
    else return;
    e.preventDefault();
    if (e.key === "Escape") e.stopPropagation();
  };
  return (
    <search class="search op-finder">
      <Icon name="search" />
      <input
        ref={box} data-filter type="text" role="combobox" aria-expanded={rows.length > 0} aria-controls="op-finder" autocomplete="off" spellcheck={false}
        placeholder="Find an op  ( / )" aria-label="Find an op" title="Part of a name, or letters of it; Enter shows the op that fits best" value={text.value}
        aria-activedescendant={rows[at.value] ? `op-found-${at.value}` : undefined}
        onFocus={() => (open.value = true)} onBlur={() => ((open.value = false), (text.value = asked))} onKeyDown={keys}
        onInput={(e) => (forget(), (text.value = e.currentTarget.value), (open.value = true))}
      />
      <ul id="op-finder" role="listbox" aria-label={text.value.trim() ? "Ops that match" : "Ops that took longest"} hidden={rows.length === 0}>
        {rows.map((row, i) => (
          <li key={String(get(row, "op"))} id={`op-found-${i}`} role="option" aria-selected={i === at.value} onPointerDown={(e) => (e.preventDefault(), choose(String(get(row, "op"))))}>
            <code>{String(get(row, "op"))}</code> <span class="ago">{String(get(row, "opcode") ?? "")}{asNumber(get(row, "self_time")) > 0 && ` \u00b7 ${show(get(row, "self_time"), "ps")}`}</span>
          </li>
        ))}
      </ul>
    </search>
  );
}
