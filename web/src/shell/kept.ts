// Lists that are kept in this browser. Tabs share them: each change is made to what is stored now, and what others write is seen.
import { signal, type ReadonlySignal } from "@preact/signals";

export interface Kept<T> {
  list: ReadonlySignal<readonly T[]>;
  change: (to: (now: readonly T[]) => readonly T[]) => void;
}

/** read: what is stored, which may be another's, or broken; null: nothing is. */
export function keptList<T>(key: string, read: (text: string | null) => readonly T[]): Kept<T> {
  const stored = (): readonly T[] => {
    try {
      return read(localStorage.getItem(key));
    } catch {
      return []; // storage may be forbidden
    }
  };
  const list = signal(stored());
  let kept = true; // what is seen here is what is stored
  globalThis.addEventListener?.("storage", (e) => {
    if (e.key === key || e.key === null) list.value = stored();
  });
  const change: Kept<T>["change"] = (to) => {
    list.value = to(kept ? stored() : list.peek());
    try {
      localStorage.setItem(key, JSON.stringify(list.peek()));
    } catch {
      kept = false; // for as long as the page lives
    }
  };
  return { list, change };
}
