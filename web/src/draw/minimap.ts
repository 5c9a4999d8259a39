import { endOf, type Range, type View } from "../model/view";
import type { Theme } from "./theme";

export function drawMinimap(
  canvas: HTMLCanvasElement, columns: Float64Array, view: View, session: Range, scale: number, theme: Theme,
): void {
  const ctx = canvas.getContext("2d", { alpha: false });
  const { clientWidth: width, clientHeight: height } = canvas;
  if (!ctx || width === 0) return;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  ctx.setTransform(scale, 0, 0, scale, 0, 0);
  ctx.fillStyle = theme.background;
  ctx.fillRect(0, 0, width, height);
  let peak = 0.05;
  for (const c of columns) peak = Math.max(peak, c);
  ctx.fillStyle = theme.accent;
  const w = width / columns.length;
  for (let i = 0; i < columns.length; i++) {
    const c = columns[i]!;
    if (c <= 0) continue;
    ctx.globalAlpha = 0.35 + (0.45 * c) / peak;
    const h = Math.max(1, (c / peak) * (height - 6));
    ctx.fillRect(i * w, height - 2 - h, w + 0.3, h);
  }
  const length = Number(session.t1 - session.t0);
  const x0 = Math.max(0, (Number(view.t0 - session.t0) / length) * width);
  const x1 = Math.min(width, Math.max(x0 + 3, (Number(endOf(view) - session.t0) / length) * width));
  ctx.globalAlpha = 0.72;
  ctx.fillStyle = theme.heading;
  ctx.fillRect(0, 0, x0, height);
  ctx.fillRect(x1, 0, width, height);
  ctx.globalAlpha = 1;
  ctx.strokeStyle = theme.accent;
  ctx.strokeRect(x0 + 0.5, 0.5, x1 - x0 - 1, height - 1);
}
