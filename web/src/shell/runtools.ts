// Which tools have something to say about a run, asked once a run; the rail and the pages share it.
import { signal, type Signal } from "@preact/signals";
import { Api } from "../api/client";
import type { ToolList, ToolState } from "../api/report";

type States = ReadonlyMap<string, ToolState>;

const AGAIN_MS = 30_000; // after an answer that failed

const known = new Map<string, Signal<States | null>>();

/** null until it is known; a server that cannot say leaves all of them open. */
export function toolsOf(root: string, run: string): Signal<States | null> {
  const key = `${root}\0${run}`;
  let found = known.get(key);
  if (!found) {
    const fresh = signal<States | null>(null);
    known.set(key, (found = fresh));
    new Api(root).json<ToolList>("tools", { run }).then(
      (got) => (fresh.value = new Map(got.tools.map((t) => [t.tool, t]))),
      () => setTimeout(() => known.delete(key), AGAIN_MS),
    );
  }
  return found;
}
