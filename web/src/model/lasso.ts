// A free line around dots of a chart with two axes of powers of ten: what of it the address holds,
// and which dots are inside.

export type Point = readonly [x: number, y: number];

export const LASSO_MAX = 32; // points; no more stand in the address

const POINT = /^([\d.e+-]{1,12})_([\d.e+-]{1,12})$/;

/** x_y,x_y,…; null: it is none, or has too few points to hold anything. */
export function parseLasso(text: string): Point[] | null {
  const parts = text.split(",");
  if (parts.length < 3 || parts.length > LASSO_MAX) return null;
  const points = parts.map((p): Point => {
    const m = POINT.exec(p);
    return m ? [Number(m[1]), Number(m[2])] : [NaN, NaN];
  });
  return points.every(([x, y]) => x > 0 && y > 0 && Number.isFinite(x) && Number.isFinite(y)) ? points : null;
}

const short = (v: number): string => v.toPrecision(4).replace("e+", "e").replace(/(\.\d*?)0+(?=e|$)/, "$1").replace(/\.(?=e|$)/, "");

export const formatLasso = (points: readonly Point[]): string => points.map(([x, y]) => `${short(x)}_${short(y)}`).join(",");

/** How far a point lies from the line between two others. */
function off(p: Point, a: Point, b: Point): number {
  const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
  const long = Math.hypot(dx, dy);
  return long === 0 ? Math.hypot(p[0] - a[0], p[1] - a[1]) : Math.abs(dy * (p[0] - a[0]) - dx * (p[1] - a[1])) / long;
}

/** Those of a line that turn by more than `least`, its ends too. */
function turns(line: readonly Point[], least: number): Point[] {
  const keep = new Set([0, line.length - 1]);
  const open: [number, number][] = [[0, line.length - 1]];
  while (open.length) {
    const [a, b] = open.pop()!;
    let [at, far] = [-1, least];
    for (let i = a + 1; i < b; i++) {
      const d = off(line[i]!, line[a]!, line[b]!);
      if (d > far) [at, far] = [i, d];
    }
    if (at < 0) continue;
    keep.add(at);
    open.push([a, at], [at, b]);
  }
  return line.filter((_, i) => keep.has(i));
}

/** The same shape with few enough points; in pixels, as it was drawn. */
export function fewer(line: readonly Point[]): Point[] {
  let out = [...line];
  for (let least = 1; out.length > LASSO_MAX && least < 1e6; least *= 1.6) out = turns(line, least);
  return out.slice(0, LASSO_MAX);
}

/** Of a polygon whose corners are joined by straight lines on both logarithmic axes. */
export function inside(polygon: readonly Point[], x: number, y: number): boolean {
  if (!(x > 0) || !(y > 0)) return false;
  const [px, py] = [Math.log(x), Math.log(y)];
  let odd = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
    const [ax, ay] = [Math.log(polygon[i]![0]), Math.log(polygon[i]![1])];
    const [bx, by] = [Math.log(polygon[j]![0]), Math.log(polygon[j]![1])];
    if (ay > py !== by > py && px < ((bx - ax) * (py - ay)) / (by - ay) + ax) odd = !odd;
  }
  return odd;
}
