// Labels and notes at runs, and those that are hidden: kept in this browser.
import { readMarks, withMark, type RunMark } from "../model/runmarks";
import { keptList } from "./kept";

const { list, change } = keptList("xprofd.runmarks", readMarks);

/** Of the runs of this place, by name. */
export function marksOf(root: string): Map<string, RunMark> {
  return new Map(list.value.filter((m) => m.root === root).map((m) => [m.run, m]));
}

export function mark(root: string, run: string, what: Partial<Pick<RunMark, "labels" | "note" | "hidden">>): void {
  change((now) => withMark(now, root, run, what));
}
