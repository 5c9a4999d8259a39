// What a tool's page reads from the address and writes back into it.
import { go, here } from "../../model/location";
import { parseSort, formatSort, type Sort } from "../../model/tablemodel";
import { formatTool, parseTool, type ToolUrl } from "../../model/toolurl";

export function current(): ToolUrl {
  return parseTool(here.value.search);
}

/** push: an entry of its own to go back to; else the present one is rewritten. */
export function set(change: Partial<ToolUrl>, push = true): void {
  const { root, page, search } = here.peek();
  go(`${root}${page}${formatTool({ ...parseTool(search), ...change })}`, !push);
}

export function setArg(name: string, value: string, push = true): void {
  const now = parseTool(here.peek().search);
  set({ args: { ...now.args, [name]: value } }, push);
}

/* --- one table's part of it; the first table of a page has the short names --- */

export interface TableState {
  q: string;
  sort: Sort | null;
  changed: Set<string>;
  group: string;
  setQ: (q: string) => void;
  setSort: (s: Sort | null) => void;
  setChanged: (ids: Set<string>) => void;
  setGroup: (column: string) => void;
  openGroup: (q: string) => void;
}

export function tableState(s: ToolUrl, id: string, first: boolean, usual: Sort | null): TableState {
  const dot = first ? "" : `.${id}`;
  const cols = s.args[`cols${dot}`] ?? "";
  return {
    q: first ? s.q : s.args[`q${dot}`] ?? "",
    sort: parseSort(first ? s.sort : s.args[`sort${dot}`] ?? "") ?? usual,
    changed: new Set(cols.split(",").filter(Boolean)),
    group: s.args[`group${dot}`] ?? "",
    setQ: (q) => (first ? set({ q }, false) : setArg(`q${dot}`, q, false)),
    setSort: (x) => (first ? set({ sort: formatSort(x) }, false) : setArg(`sort${dot}`, formatSort(x), false)),
    setChanged: (ids) => setArg(`cols${dot}`, [...ids].join(","), false),
    setGroup: (column) => setArg(`group${dot}`, column),
    openGroup: (q) => {
      const args = { ...parseTool(here.peek().search).args, [`group${dot}`]: "" };
      set(first ? { q, args } : { args: { ...args, [`q${dot}`]: q } });
    },
  };
}
