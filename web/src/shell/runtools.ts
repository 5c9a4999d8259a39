// Which tools have something to say about a run, asked once a run; the rail and the pages share it.
import { signal, type Signal } from "@preact/signals";
import { Api } from "../api/client";
import type { Report, ToolState } from "../api/report";

type States = ReadonlyMap<string, ToolState>;

const AGAIN_MS = 30_000; // after an answer that failed

const known = new Map<string, Signal<States | null>>();

/** A row of the table: tool, title, available, reason. */
function stateOf(row: Report["tables"][number]["rows"][number]): [string, ToolState] {
  const tool = String(row[0]);
  return [tool, { tool, title: String(row[1]), available: row[2] === true, reason: row[3] === null ? null : String(row[3]) }];
}

/** null until it is known; a server that cannot say leaves all of them open. */
export function toolsOf(root: string, run: string): Signal<States | null> {
  const key = `${root}\0${run}`;
  let found = known.get(key);
  if (!found) {
    const fresh = signal<States | null>(null);
    known.set(key, (found = fresh));
    new Api(root).json<Report>("report", { run, tool: "tools" }).then(
      (got) => (fresh.value = new Map((got.tables[0]?.rows ?? []).map(stateOf))),
      () => setTimeout(() => known.delete(key), AGAIN_MS),
    );
  }
  return found;
}
