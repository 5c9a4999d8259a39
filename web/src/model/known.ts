// Findings that somebody knows of already: kept in this browser, by place, workload and rule.
import { signal } from "@preact/signals";

const KEY = "xprofd.known";
const MOST = 500;

/** A run without what counts it: train-2026-11-03, train_0042 -> train. */
export function workload(run: string): string {
  return run.replace(/(\dT|[\d_:.-])+$/, "") || run;
}

const name = (root: string, run: string, rule: string): string => `${root}\t${workload(run)}\t${rule}`;

function read(): ReadonlySet<string> {
  try {
    const got: unknown = JSON.parse(globalThis.localStorage?.getItem(KEY) ?? "[]");
    return new Set(Array.isArray(got) ? got.filter((x): x is string => typeof x === "string").slice(-MOST) : []);
  } catch {
    return new Set();
  }
}

export const knownFindings = signal<ReadonlySet<string>>(read());
let kept = true; // what is seen here is what is stored

globalThis.addEventListener?.("storage", (e) => {
  if (e.key === KEY) knownFindings.value = read();
});

export const isKnown = (known: ReadonlySet<string>, root: string, run: string, rule: string): boolean => known.has(name(root, run, rule));

export function markKnown(root: string, run: string, rule: string, on: boolean): void {
  const next = new Set(kept ? read() : knownFindings.peek());
  next.delete(name(root, run, rule));
  if (on) next.add(name(root, run, rule));
  knownFindings.value = new Set([...next].slice(-MOST));
  try {
    globalThis.localStorage?.setItem(KEY, JSON.stringify([...knownFindings.value]));
  } catch {
    kept = false; // a browser that keeps nothing forgets it with the page
  }
}
