// Labels and notes at runs, and those that are hidden: kept in this browser.
import { signal } from "@preact/signals";
import { readMarks, withMark, type RunMark } from "../model/runmarks";

const KEY = "xprofd.runmarks";

function stored(): RunMark[] {
  try {
    return readMarks(localStorage.getItem(KEY));
  } catch {
    return []; // storage may be forbidden
  }
}

const marks = signal<readonly RunMark[]>(stored());
let kept = true; // what is seen here is what is stored

// What other tabs write is seen here, and kept: each change is made to what is stored now.
globalThis.addEventListener?.("storage", (e) => {
  if (e.key === KEY) marks.value = stored();
});

/** Of the runs of this place, by name. */
export function marksOf(root: string): Map<string, RunMark> {
  return new Map(marks.value.filter((m) => m.root === root).map((m) => [m.run, m]));
}

export function mark(root: string, run: string, change: Partial<Pick<RunMark, "labels" | "note" | "hidden">>): void {
  marks.value = withMark(kept ? stored() : marks.peek(), root, run, change);
  try {
    localStorage.setItem(KEY, JSON.stringify(marks.peek()));
  } catch {
    kept = false; // for as long as the page lives
  }
}
