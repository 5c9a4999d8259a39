// Lengths that go with text. The style sheets have them in rem; code has them in pixels as they are
// where the browser's default font size is its usual 16 px, times this.

let size = 1;
let read = (): number => size;

/** How large text is beside the usual. */
export function unit(): number {
  return read();
}

/** In a worker: what the page says. */
export function setUnit(k: number): void {
  size = k > 0 ? k : 1;
}

/** On the page: read from here, by whoever wants to know when it changes. */
export function unitFrom(source: () => number): void {
  read = source;
}

/** Whole pixels. */
export function px(length: number): number {
  return Math.floor(length * read());
}
