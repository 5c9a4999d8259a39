// The timeline's canvas, on the main thread or in a worker (painter.ts). Everything is in CSS pixels
// except the rectangles, which are snapped to device pixels so that edges stay crisp. Draws what it
// is given; asks nobody, and knows no page.
import { thinned } from "../layout/bars";
import { layoutLane } from "../layout/rects";
import { fitText } from "../layout/text";
import { px, unit } from "../layout/unit";
import { count, duration } from "../model/format";
import { xOf, type Range } from "../model/view";
import { Bars, type Lane, type Pen } from "./bars";
import type { Scene, SceneBox, SceneLane, SceneRow, SceneSlab } from "./scene";

export const rulerHeight = (): number => px(28);

const labelRoom = (): number => px(14); // narrower ones get no text

/** A lane in sight. */
interface Laid {
  slab: SceneSlab;
  lane: SceneLane;
  bar: Lane;
  top: number;
  height: number;
}

export class Timeline {
  private readonly ctx: CanvasRenderingContext2D;
  private readonly bars = new Bars();

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
    const w = Math.round(s.width * s.scale);
    const h = Math.round(s.height * s.scale);
    if (canvas.width !== w || canvas.height !== h) {
      canvas.width = w;
      canvas.height = h;
    }
    const lanes = this.lay(s);
    ctx.setTransform(s.scale, 0, 0, s.scale, 0, 0);
    ctx.imageSmoothingEnabled = false;
    ctx.fillStyle = s.theme.background;
    ctx.fillRect(0, 0, s.width, s.height);
    this.outside(s);
    this.grid(s);
    ctx.save();
    ctx.beginPath();
    ctx.rect(0, rulerHeight(), s.width, s.height - rulerHeight());
    ctx.clip();
    s.rows.forEach((row, i) => this.row(s, row, lanes[i]!));
    if (s.area) this.area(s, s.area);
    if (s.hovered) this.outline(s, s.hovered, s.theme.text, 1);
    if (s.selected) this.outline(s, s.selected, s.theme.selected, 2);
    for (const arrow of s.arrows) this.arrow(s, arrow);
    if (s.measured) this.measured(s, s.measured);
    this.marks(s, rulerHeight());
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
    ctx.fillRect(Math.round(x0), rulerHeight(), 1, s.height);
    ctx.fillRect(Math.round(x1), rulerHeight(), 1, s.height);
    const y = rulerHeight() + px(16);
    ctx.fillRect(Math.max(0, x0), y, Math.max(1, Math.min(s.width, x1) - Math.max(0, x0)), 1);
    const text = duration(m.t1 - m.t0, 6);
    ctx.font = `600 ${12 * unit()}px ${s.theme.font}`;
    const w = ctx.measureText(text).width + 14;
    const at = Math.min(s.width - w / 2 - 4, Math.max(w / 2 + 4, (Math.max(0, x0) + Math.min(s.width, x1)) / 2));
    this.pill(s, text, at, y, w);
  }

  private pill(s: Scene, text: string, x: number, y: number, w: number): void {
    const { ctx } = this;
    ctx.fillStyle = s.theme.accent;
    ctx.beginPath();
    ctx.roundRect(x - w / 2, y - px(9), w, px(19), px(9));
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
      ctx.fillRect(x, from, 1, from ? s.height : rulerHeight());
      ctx.globalAlpha = 1;
      if (from) return;
      ctx.fillRect(x, rulerHeight() - px(15), px(14), px(13));
      ctx.fillStyle = s.theme.background;
      ctx.font = `600 ${10 * unit()}px ${s.theme.font}`;
      ctx.textBaseline = "middle";
      ctx.textAlign = "center";
      ctx.fillText(String(i + 1), x + px(7), rulerHeight() - px(8));
      ctx.textAlign = "left";
    });
  }

  private y(s: Scene, y: number): number {
    return rulerHeight() + y - s.scrollTop;
  }

  /** Time before the session's start and after its end. */
  private outside(s: Scene): void {
    const { ctx } = this;
    ctx.fillStyle = s.theme.heading;
    const left = xOf(s.view, s.session.t0, s.width);
    const right = xOf(s.view, s.session.t1, s.width);
    if (left > 0) ctx.fillRect(0, rulerHeight(), Math.min(left, s.width), s.height);
    if (right < s.width) ctx.fillRect(Math.max(0, right), rulerHeight(), s.width, s.height);
  }

  private grid(s: Scene): void {
    const { ctx } = this;
    ctx.fillStyle = s.theme.grid;
    for (const t of s.ruler.ticks) if (t.label !== null) ctx.fillRect(Math.round(t.x), rulerHeight(), 1, s.height);
  }

  private ruler(s: Scene): void {
    const { ctx, theme } = { ctx: this.ctx, theme: s.theme };
    ctx.fillStyle = theme.background;
    ctx.fillRect(0, 0, s.width, rulerHeight());
    ctx.fillStyle = theme.line;
    ctx.fillRect(0, rulerHeight() - 1, s.width, 1);
    ctx.font = `${11 * unit()}px ${theme.font}`;
    ctx.textBaseline = "middle";
    for (const t of s.ruler.ticks) {
      const x = Math.round(t.x);
      ctx.fillStyle = t.label === null ? theme.line : theme.muted;
      ctx.fillRect(x, t.label === null ? rulerHeight() - 5 : rulerHeight() - 10, 1, t.label === null ? 4 : 9);
      if (t.label !== null) ctx.fillText(t.label, x + 5, px(13));
    }
    if (s.area) this.rulerArea(s, s.area);
    else if (s.cursorX !== null) this.rulerCursor(s, s.cursorX);
  }

  private rulerCursor(s: Scene, x: number): void {
    this.ctx.fillStyle = s.theme.accent;
    this.ctx.fillRect(Math.round(x), rulerHeight() - 8, 1, 8);
  }

  private rulerArea(s: Scene, a: Range): void {
    const { ctx } = this;
    const x0 = xOf(s.view, a.t0, s.width);
    const x1 = xOf(s.view, a.t1, s.width);
    if (x1 < 0 || x0 > s.width) return;
    const label = duration(a.t1 - a.t0, 5);
    ctx.font = `600 ${11 * unit()}px ${s.theme.font}`;
    const w = ctx.measureText(label).width + 14;
    const middle = Math.min(s.width - w / 2 - 4, Math.max(w / 2 + 4, (Math.max(0, x0) + Math.min(s.width, x1)) / 2));
    ctx.fillStyle = s.theme.accent;
    ctx.fillRect(x0, rulerHeight() - 3, Math.max(1, x1 - x0), 3);
    ctx.beginPath();
    ctx.roundRect(middle - w / 2, px(4), w, px(18), px(9));
    ctx.fill();
    ctx.fillStyle = s.theme.background;
    ctx.textAlign = "center";
    ctx.fillText(label, middle, 13.5 * unit());
    ctx.textAlign = "left";
  }

  /** The lanes in sight, by row, with their rectangles painted: all at once, as the way to the canvas is long. */
  private lay(s: Scene): Laid[][] {
    const width = Math.round(s.width * s.scale);
    this.bars.begin(width);
    const lanes = s.rows.map((row) => this.lanesOf(s, row));
    for (const laid of lanes.flat()) {
      const offset = Number(laid.slab.t0 - s.view.t0);
      layoutLane(laid.lane, offset, (s.width * s.scale) / s.view.span, width, laid.bar.spans);
      this.bars.paint(laid.bar, penOf(s, laid), Math.round(laid.top * s.scale));
    }
    this.bars.done();
    return lanes;
  }

  private lanesOf(s: Scene, row: SceneRow): Laid[] {
    const slab = row.slab && !row.curve ? this.slabOf(row.slab) : undefined;
    return (slab?.lanes ?? []).flatMap((lane) => {
      const top = this.y(s, row.y + 2 + lane.lane * row.laneH);
      if (top > s.height || top + row.laneH < rulerHeight()) return [];
      return [{ slab: slab!, lane, bar: this.bars.next(), top, height: row.laneH - 1 }];
    });
  }

  private row(s: Scene, row: SceneRow, lanes: readonly Laid[]): void {
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
    for (const laid of lanes) this.lane(s, laid);
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

  private lane(s: Scene, laid: Laid): void {
    const { ctx } = this;
    const k = s.scale;
    const y = Math.round(laid.top * k);
    const h = Math.max(1, Math.round((laid.top + laid.height) * k) - y);
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    this.bars.draw(ctx, laid.bar, y, h);
    ctx.setTransform(k, 0, 0, k, 0, 0);
    if (laid.height >= px(12)) this.labels(s, laid);
  }

  private labels(s: Scene, { slab, lane, bar, top, height }: Laid): void {
    const { ctx } = this;
    const { spans } = bar;
    const k = s.scale;
    const least = labelRoom();
    const large = unit();
    ctx.font = `${11 * large}px ${s.theme.font}`;
    ctx.textBaseline = "middle";
    ctx.fillStyle = s.theme.onRect;
    for (let i = 0; i < spans.n; i++) {
      const w = (spans.x1[i]! - spans.x0[i]!) / k;
      if (w < least) continue;
      const index = spans.index[i]!;
      const name = slab.names[lane.name[index]!]!;
      if (!name.lit || (s.lasting && !lasts(lane, index, s.lasting))) continue;
      name.width ??= ctx.measureText(name.label.slice(0, 400)).width / large;
      const n = lane.count?.[index] ?? 1;
      const label = n > 1 ? `${count(n)}× ${name.label}` : name.label;
      const text = fitText(label, ((name.width * large) / Math.max(1, Math.min(400, name.label.length))) * label.length, w - 7);
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
    ctx.fillRect(x0, rulerHeight(), 1, s.height);
    ctx.fillRect(x1 - 1, rulerHeight(), 1, s.height);
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

/** What nobody looks for stands back; merged ones are hatched. */
function penOf(s: Scene, { slab: { names }, lane }: Laid): Pen {
  const { lasting } = s;
  const { count: counts } = lane;
  const ink = (index: number): number => {
    const name = names[lane.name[index]!]!;
    const lit = name.lit && (!lasting || lasts(lane, index, lasting));
    if (counts !== null && counts[index]! > 1) return thinned(name.ink, mergedAlpha(lane, index) * (lit ? 1 : 0.3));
    return lit ? name.ink : thinned(name.ink, 0.16);
  };
  return {
    ink, gap: Math.max(1, Math.round(s.scale)),
    hatched: counts && ((index) => counts[index]! > 1),
    line: s.theme.dark ? { grey: 0, alpha: 0.28 } : { grey: 255, alpha: 0.5 },
  };
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
