// The timeline's canvas, on the main thread or in a worker (painter.ts). Everything is in CSS pixels
// except the rectangles, which are snapped to device pixels so that edges stay crisp. Draws what it
// is given; asks nobody, and knows no page.
import { layoutLane, Spans } from "../layout/rects";
import { fitText } from "../layout/text";
import { count, duration } from "../model/format";
import { xOf, type Range } from "../model/view";
import type { Scene, SceneBox, SceneLane, SceneRow, SceneSlab } from "./scene";

export const RULER = 28;

const LABEL_ROOM = 14; // narrower ones get no text
const spans = new Spans();

export class Timeline {
  private readonly ctx: CanvasRenderingContext2D;
  private hatch: CanvasPattern | null = null;
  private hatchDark: boolean | null = null;

  constructor(
    private readonly canvas: HTMLCanvasElement | OffscreenCanvas,
    private readonly slabOf: (id: number) => SceneSlab | undefined,
  ) {
    const ctx = canvas.getContext("2d", { alpha: false });
    if (!ctx) throw new Error("This browser gives no 2D canvas.");
    this.ctx = ctx as CanvasRenderingContext2D; // what is used of it is the same in a worker
  }

  draw(s: Scene): void {
    const { ctx, canvas } = this;
    this.prepare(s.theme.dark);
    const w = Math.round(s.width * s.scale);
    const h = Math.round(s.height * s.scale);
    if (canvas.width !== w || canvas.height !== h) {
      canvas.width = w;
      canvas.height = h;
    }
    ctx.setTransform(s.scale, 0, 0, s.scale, 0, 0);
    ctx.fillStyle = s.theme.background;
    ctx.fillRect(0, 0, s.width, s.height);
    this.outside(s);
    this.grid(s);
    ctx.save();
    ctx.beginPath();
    ctx.rect(0, RULER, s.width, s.height - RULER);
    ctx.clip();
    for (const row of s.rows) this.row(s, row);
    if (s.area) this.area(s, s.area);
    if (s.hovered) this.outline(s, s.hovered, s.theme.text, 1);
    if (s.selected) this.outline(s, s.selected, s.theme.selected, 2);
    for (const arrow of s.arrows) this.arrow(s, arrow);
    if (s.measured) this.measured(s, s.measured);
    this.marks(s, RULER);
    ctx.restore();
    this.ruler(s);
    this.marks(s, 0);
  }

  /** Two lines, and the time between them. */
  private measured(s: Scene, m: Range): void {
    const { ctx } = this;
    const x0 = xOf(s.view, m.t0, s.width);
    const x1 = xOf(s.view, m.t1, s.width);
    if (x1 < 0 || x0 > s.width) return;
    ctx.fillStyle = s.theme.accent;
    ctx.fillRect(Math.round(x0), RULER, 1, s.height);
    ctx.fillRect(Math.round(x1), RULER, 1, s.height);
    const y = RULER + 16;
    ctx.fillRect(Math.max(0, x0), y, Math.max(1, Math.min(s.width, x1) - Math.max(0, x0)), 1);
    const text = duration(m.t1 - m.t0, 6);
    ctx.font = `600 12px ${s.theme.font}`;
    const w = ctx.measureText(text).width + 14;
    const at = Math.min(s.width - w / 2 - 4, Math.max(w / 2 + 4, (Math.max(0, x0) + Math.min(s.width, x1)) / 2));
    this.pill(s, text, at, y, w);
  }

  private pill(s: Scene, text: string, x: number, y: number, w: number): void {
    const { ctx } = this;
    ctx.fillStyle = s.theme.accent;
    ctx.beginPath();
    ctx.roundRect(x - w / 2, y - 9, w, 19, 9);
    ctx.fill();
    ctx.fillStyle = s.theme.background;
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    ctx.fillText(text, x, y + 1);
    ctx.textAlign = "left";
  }

  /** Bookmarks: a flag on the ruler, a thin line below. */
  private marks(s: Scene, from: number): void {
    const { ctx } = this;
    s.marks.forEach((m, i) => {
      const x = Math.round(xOf(s.view, m.at, s.width));
      if (x < -20 || x > s.width + 20) return;
      ctx.fillStyle = s.theme.flow;
      ctx.globalAlpha = from ? 0.5 : 1;
      ctx.fillRect(x, from, 1, from ? s.height : RULER);
      ctx.globalAlpha = 1;
      if (from) return;
      ctx.fillRect(x, RULER - 15, 14, 13);
      ctx.fillStyle = s.theme.background;
      ctx.font = `600 10px ${s.theme.font}`;
      ctx.textBaseline = "middle";
      ctx.textAlign = "center";
      ctx.fillText(String(i + 1), x + 7, RULER - 8);
      ctx.textAlign = "left";
    });
  }

  private y(s: Scene, y: number): number {
    return RULER + y - s.scrollTop;
  }

  /** Time before the session's start and after its end. */
  private outside(s: Scene): void {
    const { ctx } = this;
    ctx.fillStyle = s.theme.heading;
    const left = xOf(s.view, s.session.t0, s.width);
    const right = xOf(s.view, s.session.t1, s.width);
    if (left > 0) ctx.fillRect(0, RULER, Math.min(left, s.width), s.height);
    if (right < s.width) ctx.fillRect(Math.max(0, right), RULER, s.width, s.height);
  }

  private grid(s: Scene): void {
    const { ctx } = this;
    ctx.fillStyle = s.theme.grid;
    for (const t of s.ruler.ticks) if (t.label !== null) ctx.fillRect(Math.round(t.x), RULER, 1, s.height);
  }

  private ruler(s: Scene): void {
    const { ctx, theme } = { ctx: this.ctx, theme: s.theme };
    ctx.fillStyle = theme.background;
    ctx.fillRect(0, 0, s.width, RULER);
    ctx.fillStyle = theme.line;
    ctx.fillRect(0, RULER - 1, s.width, 1);
    ctx.font = `11px ${theme.font}`;
    ctx.textBaseline = "middle";
    for (const t of s.ruler.ticks) {
      const x = Math.round(t.x);
      ctx.fillStyle = t.label === null ? theme.line : theme.muted;
      ctx.fillRect(x, t.label === null ? RULER - 5 : RULER - 10, 1, t.label === null ? 4 : 9);
      if (t.label !== null) ctx.fillText(t.label, x + 5, 13);
    }
    if (s.area) this.rulerArea(s, s.area);
    else if (s.cursorX !== null) this.rulerCursor(s, s.cursorX);
  }

  private rulerCursor(s: Scene, x: number): void {
    this.ctx.fillStyle = s.theme.accent;
    this.ctx.fillRect(Math.round(x), RULER - 8, 1, 8);
  }

  private rulerArea(s: Scene, a: Range): void {
    const { ctx } = this;
    const x0 = xOf(s.view, a.t0, s.width);
    const x1 = xOf(s.view, a.t1, s.width);
    if (x1 < 0 || x0 > s.width) return;
    const label = duration(a.t1 - a.t0, 5);
    ctx.font = `600 11px ${s.theme.font}`;
    const w = ctx.measureText(label).width + 14;
    const middle = Math.min(s.width - w / 2 - 4, Math.max(w / 2 + 4, (Math.max(0, x0) + Math.min(s.width, x1)) / 2));
    ctx.fillStyle = s.theme.accent;
    ctx.fillRect(x0, RULER - 3, Math.max(1, x1 - x0), 3);
    ctx.beginPath();
    ctx.roundRect(middle - w / 2, 4, w, 18, 9);
    ctx.fill();
    ctx.fillStyle = s.theme.background;
    ctx.textAlign = "center";
    ctx.fillText(label, middle, 13.5);
    ctx.textAlign = "left";
  }

  private row(s: Scene, row: SceneRow): void {
    const { ctx } = this;
    const y = this.y(s, row.y);
    if (row.line < 0) {
      ctx.fillStyle = s.theme.heading;
      ctx.fillRect(0, y, s.width, row.h);
      ctx.fillStyle = s.theme.line;
      ctx.fillRect(0, y + row.h - 1, s.width, 1);
      return;
    }
    if (row.pinned) {
      ctx.fillStyle = s.theme.background;
      ctx.fillRect(0, y, s.width, row.h);
    }
    ctx.fillStyle = row.pinned ? s.theme.accent : s.theme.line;
    ctx.fillRect(0, y + row.h - 1, s.width, 1);
    if (row.curve) this.curve(s, row.curve, y + 3, row.h - 7);
    const slab = row.slab ? this.slabOf(row.slab) : undefined;
    if (!slab) return;
    const offset = Number(slab.t0 - s.view.t0);
    for (const lane of slab.lanes) {
      const top = this.y(s, row.y + 2 + lane.lane * row.laneH);
      if (top > s.height || top + row.laneH < RULER) continue;
      this.lane(s, slab, lane, offset, top, row.laneH - 1);
    }
  }

  /** Steps, filled down to the scale's begin. */
  private curve(s: Scene, c: NonNullable<SceneRow["curve"]>, top: number, height: number): void {
    const { ctx } = this;
    const k = s.width / s.view.span;
    const x = (i: number): number => Math.min(s.width + 4, Math.max(-4, (c.t[i]! + Number(c.t0 - s.view.t0)) * k));
    const y = (v: number): number => top + height - ((v - c.from) / (c.to - c.from)) * height;
    const n = c.t.length;
    if (n === 0) return;
    ctx.beginPath();
    ctx.moveTo(x(0), y(c.v[0]!));
    for (let i = 1; i < n; i++) {
      ctx.lineTo(x(i), y(c.v[i - 1]!));
      ctx.lineTo(x(i), y(c.v[i]!));
    }
    const end = Math.min(s.width + 4, xOf(s.view, s.session.t1, s.width));
    ctx.lineTo(Math.max(x(n - 1), end), y(c.v[n - 1]!));
    ctx.strokeStyle = ctx.fillStyle = s.theme.accent;
    ctx.lineWidth = 1.25;
    ctx.stroke();
    ctx.lineTo(Math.max(x(n - 1), end), top + height);
    ctx.lineTo(x(0), top + height);
    ctx.globalAlpha = 0.16;
    ctx.fill();
    ctx.globalAlpha = 1;
  }

  private lane(s: Scene, slab: SceneSlab, lane: SceneLane, offset: number, top: number, height: number): void {
    const { ctx } = this;
    const k = s.scale;
    layoutLane(lane, offset, (s.width * k) / s.view.span, Math.round(s.width * k), spans);
    const y = Math.round(top * k);
    const h = Math.max(1, Math.round((top + height) * k) - y);
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    this.fillSpans(slab, lane, y, h, k, s.lasting);
    ctx.setTransform(k, 0, 0, k, 0, 0);
    if (height >= 12) this.labels(s, slab, lane, top, height);
  }

  /** Neighbours of one colour and no width of their own become one fill. */
  private fillSpans(slab: SceneSlab, lane: SceneLane, y: number, h: number, k: number, lasting: Scene["lasting"]): void {
    const { ctx } = this;
    const gap = Math.max(1, Math.round(k));
    const narrow = 3 * gap;
    let runFrom = 0;
    let runTo = -1;
    let runColour = "";
    let runAlpha = 1;
    const flush = (): void => {
      if (runTo > runFrom) {
        ctx.fillStyle = runColour;
        ctx.globalAlpha = runAlpha;
        ctx.fillRect(runFrom, y, runTo - runFrom, h);
      }
      runTo = -1;
    };
    for (let i = 0; i < spans.n; i++) {
      const x0 = spans.x0[i]!;
      const x1 = spans.x1[i]!;
      const index = spans.index[i]!;
      const name = slab.names[lane.name[index]!]!;
      const merged = lane.count !== null && lane.count[index]! > 1;
      const lit = name.lit && (!lasting || lasts(lane, index, lasting));
      const alpha = merged ? mergedAlpha(lane, index) * (lit ? 1 : 0.3) : lit ? 1 : 0.16;
      const wide = x1 - x0 > narrow;
      if (wide || x0 !== runTo || name.colour !== runColour || alpha !== runAlpha) {
        flush();
        [runFrom, runColour, runAlpha] = [x0, name.colour, alpha];
      }
      runTo = wide ? x1 - gap : x1;
      if (wide) {
        flush();
        if (merged) this.texture(x0, y, x1 - gap - x0, h);
      }
    }
    flush();
    ctx.globalAlpha = 1;
  }

  private texture(x: number, y: number, w: number, h: number): void {
    if (!this.hatch) return;
    this.ctx.globalAlpha = 1;
    this.ctx.fillStyle = this.hatch;
    this.ctx.fillRect(x, y, w, h);
  }

  /** The pattern over merged rectangles. */
  private prepare(dark: boolean): void {
    if (this.hatchDark === dark) return;
    this.hatchDark = dark;
    const tile = tileOf(6);
    const t = tile.getContext("2d") as CanvasRenderingContext2D | null;
    if (!t) return;
    t.strokeStyle = dark ? "rgb(0 0 0 / .28)" : "rgb(255 255 255 / .5)";
    t.lineWidth = 1.2;
    t.beginPath();
    for (const d of [-6, 0, 6]) {
      t.moveTo(d, 6);
      t.lineTo(d + 6, 0);
    }
    t.stroke();
    this.hatch = this.ctx.createPattern(tile, "repeat");
  }

  private labels(s: Scene, slab: SceneSlab, lane: SceneLane, top: number, height: number): void {
    const { ctx } = this;
    const k = s.scale;
    ctx.font = `11px ${s.theme.font}`;
    ctx.textBaseline = "middle";
    ctx.fillStyle = s.theme.onRect;
    for (let i = 0; i < spans.n; i++) {
      const w = (spans.x1[i]! - spans.x0[i]!) / k;
      if (w < LABEL_ROOM) continue;
      const index = spans.index[i]!;
      const name = slab.names[lane.name[index]!]!;
      if (!name.lit || (s.lasting && !lasts(lane, index, s.lasting))) continue;
      name.width ??= ctx.measureText(name.label.slice(0, 400)).width;
      const n = lane.count?.[index] ?? 1;
      const label = n > 1 ? `${count(n)}× ${name.label}` : name.label;
      const text = fitText(label, (name.width / Math.max(1, Math.min(400, name.label.length))) * label.length, w - 7);
      if (text) ctx.fillText(text, spans.x0[i]! / k + 4, top + height / 2 + 0.5, w - 6);
    }
  }

  private outline(s: Scene, m: SceneBox, colour: string, width: number): void {
    const top = this.y(s, m.y);
    const { ctx } = this;
    const x0 = Math.max(-10, xOf(s.view, m.begin, s.width));
    const x1 = Math.min(s.width + 10, Math.max(x0 + 2, xOf(s.view, m.end, s.width)));
    ctx.strokeStyle = colour;
    ctx.lineWidth = width;
    const out = width / 2;
    ctx.strokeRect(x0 - out, top - out, x1 - x0 + out, m.h + 2 * out);
    if (width > 1 && x1 - x0 < 8) this.pointer(s, (x0 + x1) / 2, top, colour);
  }

  /** A small mark above an event that is too narrow to notice. */
  private pointer(s: Scene, x: number, y: number, colour: string): void {
    const { ctx } = this;
    if (x < -5 || x > s.width + 5) return;
    ctx.fillStyle = colour;
    ctx.beginPath();
    ctx.moveTo(x - 5, y - 8);
    ctx.lineTo(x + 5, y - 8);
    ctx.lineTo(x, y - 1);
    ctx.fill();
  }

  private area(s: Scene, a: NonNullable<Scene["area"]>): void {
    const { ctx } = this;
    const x0 = Math.max(-2, xOf(s.view, a.t0, s.width));
    const x1 = Math.min(s.width + 2, xOf(s.view, a.t1, s.width));
    ctx.fillStyle = s.theme.areaFill;
    for (const row of s.rows)
      if (row.line >= 0 && (!a.lines || a.lines.has(row.line)))
        ctx.fillRect(x0, this.y(s, row.y), Math.max(1, x1 - x0), row.h);
    ctx.fillStyle = s.theme.accent;
    ctx.fillRect(x0, RULER, 1, s.height);
    ctx.fillRect(x1 - 1, RULER, 1, s.height);
  }

  private arrow(s: Scene, a: Scene["arrows"][number]): void {
    const limit = 20_000; // canvas coordinates stay sane however far away the other end is
    const clamp = (x: number): number => Math.min(limit, Math.max(-limit, x));
    const x0 = clamp(xOf(s.view, a.from, s.width));
    const x1 = clamp(xOf(s.view, a.to, s.width));
    const y0 = this.y(s, a.fromY);
    const y1 = this.y(s, a.toY);
    const bend = Math.max(24, Math.min(160, Math.abs(x1 - x0) / 2));
    const { ctx } = this;
    ctx.strokeStyle = ctx.fillStyle = s.theme.flow;
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    ctx.moveTo(x0, y0);
    ctx.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
    ctx.stroke();
    ctx.beginPath();
    ctx.moveTo(x1, y1);
    ctx.lineTo(x1 - 7, y1 - 4);
    ctx.lineTo(x1 - 7, y1 + 4);
    ctx.fill();
  }
}

/** Lighter the less of the time behind it is busy. */
function mergedAlpha(lane: SceneLane, index: number): number {
  const share = (lane.busyOf?.[index] ?? 0) / Math.max(1, lane.duration[index]!);
  return 0.4 + 0.4 * Math.round(Math.min(1, share) * 4) / 4;
}

/** Is the event as long as is asked for? Of merged ones: could one of them be? */
function lasts(lane: SceneLane, index: number, { least, most }: NonNullable<Scene["lasting"]>): boolean {
  if (lane.count !== null && lane.count[index]! > 1) return (lane.busyOf?.[index] ?? 0) >= least;
  const d = lane.duration[index]!;
  return d >= least && d <= most;
}

function tileOf(size: number): HTMLCanvasElement | OffscreenCanvas {
  if (typeof document === "undefined") return new OffscreenCanvas(size, size);
  const c = document.createElement("canvas");
  c.width = c.height = size;
  return c;
}
