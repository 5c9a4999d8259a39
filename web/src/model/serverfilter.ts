// What of a filter the server can apply to rows that it keeps back: one word, or one regular
// expression. It finds at least what the page's own filter leaves, for it looks at texts and ops only.
import type { Column } from "../api/report";
import { Pattern } from "./regex";
import { findColumn } from "./tablemodel";

export function serverFilter(q: string, columns: readonly Column[]): string {
  const words = q.replace(/-?(?:[\w.]+:)?"[^"]*"?/g, " ").split(/\s+/).filter((w) => !w.startsWith("-"));
  for (const w of words) {
    const [, name = "", pattern] = /^(?:([\w.]+):)?(\/.+\/)$/.exec(w) ?? [];
    if (!pattern || !isPattern(pattern.slice(1, -1))) continue;
    const column = columns[findColumn(columns, name)];
    if (!name || column?.type === "text" || column?.type === "op") return pattern;
  }
  return words.find((w) => /^[\w.-]{2,}$/.test(w)) ?? "";
}

function isPattern(text: string): boolean {
  try {
    return new Pattern(text) !== null;
  } catch {
    return false;
  }
}
