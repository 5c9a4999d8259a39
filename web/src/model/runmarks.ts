// What somebody writes at runs: labels, a note, and which are out of sight. Profiles are never written
// to, and the server keeps nothing: it is the browser's.
export interface RunMark {
  root: string;
  run: string;
  labels: string[];
  note: string;
  hidden: boolean;
}

export const MOST_MARKS = 1000;
const LABELS = 8;
const LABEL_LENGTH = 40;
const NOTE_LENGTH = 2000;

/** What was stored, as far as it is what we store. */
export function readMarks(text: string | null): RunMark[] {
  let v: unknown;
  try {
    v = JSON.parse(text ?? "[]");
  } catch {
    return [];
  }
  if (!Array.isArray(v)) return [];
  return v.filter((m: RunMark | null): m is RunMark =>
    typeof m?.root === "string" && typeof m.run === "string" && typeof m.note === "string" && typeof m.hidden === "boolean" &&
    Array.isArray(m.labels) && m.labels.every((l) => typeof l === "string"));
}

/** "a, b" as labels: each once, none empty. */
export function parseLabels(text: string): string[] {
  return [...new Set(text.split(",").map((l) => l.trim().slice(0, LABEL_LENGTH)).filter(Boolean))].slice(0, LABELS);
}

const isBlank = (m: RunMark): boolean => m.labels.length === 0 && m.note === "" && !m.hidden;

/** The list with the change; of too many the oldest go. */
export function withMark(list: readonly RunMark[], root: string, run: string, change: Partial<Pick<RunMark, "labels" | "note" | "hidden">>): RunMark[] {
  const old = list.find((m) => m.root === root && m.run === run) ?? { root, run, labels: [], note: "", hidden: false };
  const made = { ...old, ...change };
  made.note = made.note.slice(0, NOTE_LENGTH);
  const others = list.filter((m) => m !== old);
  return (isBlank(made) ? others : [...others, made]).slice(-MOST_MARKS);
}
