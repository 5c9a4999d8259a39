// What a run's profiles tell of their coverage, asked once for each choice of hosts, when they are loaded.
import { signal, type Signal } from "@preact/signals";
import { Api } from "../api/client";
import { asReport, type Report } from "../api/report";

const MOST = 40;
const AGAIN_MS = 30_000; // after an answer that failed

const known = new Map<string, Signal<Report | null>>();

/** null until it is known. For pages that have their report: then it costs next to nothing. */
export function coverageOf(root: string, run: string, hosts: readonly string[]): Signal<Report | null> {
  const key = JSON.stringify([root, run, ...hosts]);
  const found = known.get(key);
  if (found) return found;
  const fresh = signal<Report | null>(null);
  known.set(key, fresh);
  for (const old of known.keys()) {
    if (known.size <= MOST) break;
    known.delete(old);
  }
  new Api(root).json<Partial<Report>>("report", { run, tool: "coverage", host: hosts }).then(
    (got) => (fresh.value = asReport(got)),
    () => setTimeout(() => known.delete(key), AGAIN_MS),
  );
  return fresh;
}
