// Runs that somebody comes back to: kept in the browser, shown in the rail and marked in the list.
import { signal } from "@preact/signals";

interface Pin {
  root: string;
  run: string;
}

const KEY = "xprofd.pins";
const MOST = 12;

function stored(): Pin[] {
  try {
    const v: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(v) ? (v as Pin[]).filter((p) => typeof p?.root === "string" && typeof p.run === "string") : [];
  } catch {
    return []; // storage may be forbidden, or another's
  }
}

const pins = signal<readonly Pin[]>(stored());

export const pinned = (root: string): string[] => pins.value.filter((p) => p.root === root).map((p) => p.run);

export function togglePin(root: string, run: string): void {
  const others = pins.peek().filter((p) => p.root !== root || p.run !== run);
  pins.value = others.length < pins.peek().length ? others : [...others, { root, run }].slice(-MOST);
  try {
    localStorage.setItem(KEY, JSON.stringify(pins.peek()));
  } catch {
    // for as long as the page lives
  }
}
