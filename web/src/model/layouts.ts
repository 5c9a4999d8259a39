// Arrangements of rows under a name: what is pinned, hidden, flattened and folded, by the names of planes and lines, so
// that one made on a profile fits the next.
import type { Plane } from "../api/types";

/** A line: its plane's name, its own, and which of several that are called so. */
export type Path = [plane: string, line: string, nth: number];

export interface Layout {
  name: string;
  pins: Path[];
  hide: Path[];
  flat: Path[];
  folded: string[]; // planes whose folding differs from the usual
}

/** The same in numbers of one profile. */
export interface Arrangement {
  pins: number[];
  hide: number[];
  flat: number[];
  folded: number[];
}

const MOST = 2000; // lines of a list
export const LAYOUTS_MAX = 30;

function pathsOf(planes: readonly Plane[]): Map<number, Path> {
  const seen = new Map<string, number>();
  const out = new Map<number, Path>();
  for (const p of planes)
    for (const l of p.lines) {
      const key = JSON.stringify([p.name, l.name]);
      const nth = seen.get(key) ?? 0;
      seen.set(key, nth + 1);
      out.set(l.line, [p.name, l.name, nth]);
    }
  return out;
}

export function layoutOf(name: string, planes: readonly Plane[], a: Arrangement): Layout {
  const paths = pathsOf(planes);
  const named = (lines: readonly number[]): Path[] => lines.map((l) => paths.get(l)).filter((p) => p !== undefined).slice(0, MOST);
  const plane = new Map(planes.map((p) => [p.plane, p.name]));
  return { name, pins: named(a.pins), hide: named(a.hide), flat: named(a.flat), folded: a.folded.flatMap((n) => plane.get(n) ?? []).slice(0, MOST) };
}

/** How many lines of it these planes do not have, or not yet. */
export function linesNotIn(planes: readonly Plane[], a: Arrangement): number {
  const here = pathsOf(planes);
  return new Set([...a.pins, ...a.hide, ...a.flat].filter((l) => !here.has(l))).size;
}

/** absent: lines and planes that this profile does not have, or that are not loaded. */
export function arrangementOf(planes: readonly Plane[], l: Layout): Arrangement & { absent: number } {
  const byPath = new Map([...pathsOf(planes)].map(([line, path]) => [JSON.stringify(path), line]));
  let absent = 0;
  const numbers = (paths: readonly Path[]): number[] =>
    paths.flatMap((p) => {
      const line = byPath.get(JSON.stringify(p));
      if (line === undefined) absent++;
      return line ?? [];
    });
  const folded = l.folded.flatMap((name) => {
    const found = planes.filter((p) => p.name === name).map((p) => p.plane);
    if (found.length === 0) absent++;
    return found;
  });
  return { pins: numbers(l.pins), hide: numbers(l.hide), flat: numbers(l.flat), folded, absent };
}

const isPath = (p: unknown): p is Path => Array.isArray(p) && typeof p[0] === "string" && typeof p[1] === "string" && typeof p[2] === "number";

/** What a browser kept, which may be another's, or broken. */
export function parseLayouts(text: string | null): Layout[] {
  try {
    const list: unknown = JSON.parse(text ?? "[]");
    if (!Array.isArray(list)) return [];
    const paths = (v: unknown): Path[] => (Array.isArray(v) ? v.filter(isPath).slice(0, MOST) : []);
    return (list as Partial<Layout>[])
      .filter((l) => typeof l?.name === "string" && l.name !== "")
      .map((l) => ({
        name: l.name!, pins: paths(l.pins), hide: paths(l.hide), flat: paths(l.flat),
        folded: Array.isArray(l.folded) ? l.folded.filter((f): f is string => typeof f === "string").slice(0, MOST) : [],
      }))
      .slice(0, LAYOUTS_MAX);
  } catch {
    return [];
  }
}
