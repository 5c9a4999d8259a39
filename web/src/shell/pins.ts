// Runs that somebody comes back to: kept in the browser, shown in the rail and marked in the list.
import { keptList } from "./kept";

interface Pin {
  root: string;
  run: string;
}

const MOST = 12;

function read(text: string | null): Pin[] {
  const v: unknown = JSON.parse(text ?? "[]");
  return Array.isArray(v) ? (v as Pin[]).filter((p) => typeof p?.root === "string" && typeof p.run === "string") : [];
}

const { list, change } = keptList("xprofd.pins", read);

export const pinned = (root: string): string[] => list.value.filter((p) => p.root === root).map((p) => p.run);

/** As it is seen here: another tab may have done it already. */
export function togglePin(root: string, run: string): void {
  const pin = !pinned(root).includes(run);
  change((now) => {
    const others = now.filter((p) => p.root !== root || p.run !== run);
    return pin ? [...others, { root, run }].slice(-MOST) : others;
  });
}
