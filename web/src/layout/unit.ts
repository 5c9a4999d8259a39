// Lengths that go with text. The style sheets have them in rem; code has them in pixels as they are
// where the browser's default font size is its usual 16 px, times this.

/** A worker is given it as its name. */
function measured(): number {
  const k = typeof document === "object" ? parseFloat(getComputedStyle(document.documentElement).fontSize) / 16 : Number((globalThis as { name?: string }).name);
  return k > 0 ? k : 1;
}

export const unit = measured();

/** Whole pixels. */
export function px(length: number): number {
  return Math.floor(length * unit);
}
