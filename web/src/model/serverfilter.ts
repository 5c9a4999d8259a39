// What of a filter the server can apply to rows that it keeps back: one word, or one regular
// expression. It finds at least what the page's own filter leaves.
import { Pattern } from "./regex";

export function serverFilter(q: string): string {
  const words = q.split(/\s+/).filter((w) => !w.startsWith("-"));
  for (const w of words) {
    const pattern = /^(?:[\w.]+:)?(\/.+\/)$/.exec(w)?.[1];
    if (pattern && isPattern(pattern.slice(1, -1))) return pattern;
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
