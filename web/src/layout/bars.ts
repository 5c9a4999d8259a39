// Rectangles of a lane as one row of pixels: every rectangle of a lane is as tall as the others, so
// a row of them is all there is to say. Numbers in, pixels out.
import type { Spans } from "./rects";

/** "#rrggbb" as ImageData holds it, opaque; bytes are in the order of all machines that browsers run on. */
export function inkOf(hex: string): number {
  const rgb = parseInt(hex.slice(1), 16) || 0;
  return (0xff000000 | ((rgb & 0xff) << 16) | (rgb & 0xff00) | (rgb >> 16)) >>> 0;
}

/** The ink, so much of it. */
export function thinned(ink: number, alpha: number): number {
  return ((ink & 0xffffff) | (Math.round(alpha * 255) << 24)) >>> 0;
}

/**
 * Paints spans into the pixels that begin at `from`. Between wide ones there is a gap; narrow ones
 * have no room for it. pen says the pixel of a rectangle.
 */
export function paintSpans(spans: Spans, pen: (index: number) => number, gap: number, px: Uint32Array, from: number): void {
  const { n, x0, x1, index } = spans;
  for (let i = 0; i < n; i++) {
    const ink = pen(index[i]!);
    const a = from + x0[i]!;
    const b = from + x1[i]! - (isWide(x0[i]!, x1[i]!, gap) ? gap : 0);
    if (b - a > 32) px.fill(ink, a, b);
    else for (let x = a; x < b; x++) px[x] = ink; // a call costs more than these
  }
}

export function isWide(x0: number, x1: number, gap: number): boolean {
  return x1 - x0 > 3 * gap;
}

export const HATCH = 6; // rows, and pixels of a row, until the hatching repeats

const COVER = [1, 0.35, 0, 0, 0, 0.35]; // of a pixel by a line of it, from left to right

/** A grey with its alpha laid over an ink. */
function over(ink: number, grey: number, alpha: number): number {
  const own = (ink >>> 24) / 255 * (1 - alpha);
  const sum = own + alpha;
  const mix = (shift: number): number => Math.round((((ink >>> shift) & 255) * own + grey * alpha) / sum) << shift;
  return ((Math.round(sum * 255) << 24) | mix(16) | mix(8) | mix(0)) >>> 0;
}

/**
 * Lines from lower left to upper right over the wide spans that are asked for, painted already in
 * HATCH rows of `width` pixels, the first of which is drawn at y.
 */
export function hatchSpans(
  spans: Spans, hatched: (index: number) => boolean, gap: number, line: { grey: number; alpha: number },
  px: Uint32Array, from: number, width: number, y: number,
): void {
  const { n, x0, x1, index } = spans;
  for (let i = 0; i < n; i++) {
    if (!isWide(x0[i]!, x1[i]!, gap) || !hatched(index[i]!)) continue;
    const ink = px[from + x0[i]!]!; // before it is written
    const inks = COVER.map((c) => (c ? over(ink, line.grey, line.alpha * c) : ink));
    for (let r = 0; r < HATCH; r++)
      for (let x = x0[i]!; x < x1[i]! - gap; x++) px[from + r * width + x] = inks[(x + y + r) % HATCH]!;
  }
}

export function anyHatched(spans: Spans, hatched: (index: number) => boolean, gap: number): boolean {
  for (let i = 0; i < spans.n; i++) if (isWide(spans.x0[i]!, spans.x1[i]!, gap) && hatched(spans.index[i]!)) return true;
  return false;
}
