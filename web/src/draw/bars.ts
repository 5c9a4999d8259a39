// The rectangles of all lanes in sight as rows of pixels, which drawing stretches to their heights:
// a lane costs one call whatever the number of rectangles. In software that is a tenth of filling
// them one by one. A lane that is hatched has as many rows as the hatching.
import { anyHatched, HATCH, hatchSpans, paintSpans } from "../layout/bars";
import { Spans } from "../layout/rects";

export type Surface = HTMLCanvasElement | OffscreenCanvas;

export function surface(width: number, height: number): Surface {
  if (typeof document === "undefined") return new OffscreenCanvas(width, height);
  return Object.assign(document.createElement("canvas"), { width, height });
}

/** How the rectangles of a lane look. */
export interface Pen {
  ink(index: number): number;
  hatched: ((index: number) => boolean) | null;
  gap: number; // device pixels between wide ones
  line: { grey: number; alpha: number }; // of the hatching
}

export class Lane {
  readonly spans = new Spans();
  row = 0; // its first
  rows = 1;
}

export class Bars {
  private canvas: Surface | null = null;
  private ctx: CanvasRenderingContext2D | null = null;
  private px = new Uint32Array(0);
  private readonly lanes: Lane[] = []; // reused from picture to picture
  private n = 0;
  private rows = 0;
  private width = 0; // in device pixels

  /** A new picture. */
  begin(width: number): void {
    this.n = this.rows = 0;
    this.width = width;
  }

  /** The next lane; its spans are to be filled, then it is painted. */
  next(): Lane {
    if (this.n === this.lanes.length) this.lanes.push(new Lane());
    return this.lanes[this.n++]!;
  }

  /** y: where it will be drawn. */
  paint(lane: Lane, pen: Pen, y: number): void {
    const { width } = this;
    const hatched = pen.hatched && anyHatched(lane.spans, pen.hatched, pen.gap);
    lane.row = this.rows;
    lane.rows = hatched ? HATCH : 1;
    this.rows += lane.rows;
    if (this.px.length < this.rows * width) this.grow();
    const from = lane.row * width;
    this.px.fill(0, from, from + width);
    paintSpans(lane.spans, pen.ink, pen.gap, this.px, from);
    if (!hatched) return;
    for (let r = 1; r < HATCH; r++) this.px.copyWithin(from + r * width, from, from + width);
    hatchSpans(lane.spans, pen.hatched!, pen.gap, pen.line, this.px, from, width, y);
  }

  private grow(): void {
    const old = this.px;
    this.px = new Uint32Array(Math.max(2 * old.length, this.rows * this.width));
    this.px.set(old);
  }

  /** All lanes are painted. */
  done(): void {
    const { width, rows } = this;
    if (rows * width === 0) return;
    if (!this.canvas || this.canvas.width !== width || this.canvas.height < rows) {
      this.canvas = surface(width, 2 * rows);
      // What is written pixel by pixel is kept where the processor writes.
      this.ctx = this.canvas.getContext("2d", { willReadFrequently: true }) as CanvasRenderingContext2D | null;
    }
    this.ctx?.putImageData(new ImageData(new Uint8ClampedArray(this.px.buffer as ArrayBuffer, 0, 4 * width * rows), width), 0, 0);
  }

  /** In device pixels. */
  draw(ctx: CanvasRenderingContext2D, lane: Lane, y: number, h: number): void {
    const { canvas, width } = this;
    if (!canvas || width === 0) return;
    if (lane.rows === 1) return ctx.drawImage(canvas, 0, lane.row, width, 1, 0, y, width, h);
    for (let done = 0; done < h; done += HATCH) {
      const n = Math.min(HATCH, h - done);
      ctx.drawImage(canvas, 0, lane.row, width, n, 0, y + done, width, n);
    }
  }
}
