// Sets that are not changed: another one takes their place.

/** With x, or without it if it was there. */
export function toggled<T>(set: ReadonlySet<T>, x: T): Set<T> {
  const next = new Set(set);
  if (!next.delete(x)) next.add(x);
  return next;
}
