// A small graph in layers: operands above, users below. Longest path for the layers, medians for the
// order in them, each node then moved towards its neighbours. Cycles are cut where they are met.

export interface Edge {
  from: number;
  to: number;
}

export interface Placed {
  x: number[]; // middle of each node
  y: number[]; // top
  width: number;
  height: number;
  layer: number[]; // row that it stands in
}

const SWEEPS = 6;
const MANY = 500; // of nodes; pictures have fewer: what is beyond is drawn fast, not well
const GAP_X = 18;
const ABREAST = 10; // of a layer; more stand in rows behind each other
const GAP_ROWS = 20; // between these
export const GAP_Y = 46;

function layersOf(n: number, edges: readonly Edge[]): number[] {
  const indegree = new Array<number>(n).fill(0);
  const out: number[][] = Array.from({ length: n }, () => []);
  for (const e of edges) {
    out[e.from]!.push(e.to);
    indegree[e.to]!++;
  }
  const layer = new Array<number>(n).fill(0);
  const done = new Array<boolean>(n).fill(false);
  const ready = indegree.flatMap((d, i) => (d === 0 ? [i] : []));
  for (let left = n; left > 0; ) {
    let at = ready.pop();
    if (at === undefined) at = done.indexOf(false); // a cycle: cut here
    if (done[at]) continue;
    done[at] = true;
    left--;
    for (const to of out[at]!) {
      if (done[to]) continue;
      layer[to] = Math.max(layer[to]!, layer[at]! + 1);
      if (--indegree[to]! === 0) ready.push(to);
    }
  }
  // What comes from nowhere stands just above the first that uses it, not at the very top.
  const first = new Array<boolean>(n).fill(true);
  for (const e of edges) first[e.to] = false;
  for (let i = 0; i < n; i++) if (first[i] && out[i]!.length) layer[i] = Math.max(0, out[i]!.reduce((m, to) => Math.min(m, layer[to]!), Infinity) - 1);
  return layer;
}

const median = (list: number[]): number => {
  if (list.length === 0) return -1;
  list.sort((a, b) => a - b);
  const half = list.length >> 1;
  return list.length % 2 ? list[half]! : (list[half - 1]! + list[half]!) / 2;
};

/** `heights`: one for all, or each its own; a layer is as high as its highest. */
export function layered(widths: readonly number[], heights: number | readonly number[], edges: readonly Edge[], gap = GAP_Y): Placed {
  const n = widths.length;
  const layer = layersOf(n, edges);
  const count = n ? layer.reduce((m, l) => Math.max(m, l), 0) + 1 : 0;
  const rows: number[][] = Array.from({ length: count }, () => []);
  for (let i = 0; i < n; i++) rows[layer[i]!]!.push(i);
  const up: number[][] = Array.from({ length: n }, () => []);
  const down: number[][] = Array.from({ length: n }, () => []);
  for (const e of edges) {
    if (layer[e.from]! >= layer[e.to]!) continue;
    up[e.to]!.push(e.from);
    down[e.from]!.push(e.to);
  }
  const place = new Array<number>(n).fill(0);
  const number = (row: number[]): void => row.forEach((i, k) => (place[i] = k));
  rows.forEach(number);
  const sweeps = n > MANY || edges.length > 4 * MANY ? 2 : SWEEPS;
  for (let s = 0; s < sweeps; s++) {
    const forward = s % 2 === 0;
    for (const row of forward ? rows : [...rows].reverse()) {
      const key = new Map(row.map((i) => [i, median((forward ? up : down)[i]!.map((k) => place[k]!))]));
      row.sort((a, b) => (key.get(a)! < 0 ? place[a]! : key.get(a)!) - (key.get(b)! < 0 ? place[b]! : key.get(b)!) || place[a]! - place[b]!);
      number(row);
    }
  }
  // A layer of many is several rows, by turns, so that each has its part of all that is left and right.
  const behind: boolean[] = []; // by row: it is of the same layer as the one above
  const all = rows.flatMap((row) => {
    const lines = Math.ceil(row.length / ABREAST);
    return Array.from({ length: lines }, (_, k) => (behind.push(k > 0), row.filter((_, i) => i % lines === k)));
  });
  const x = new Array<number>(n).fill(0);
  for (const row of all) {
    let at = 0;
    for (const i of row) {
      x[i] = at + widths[i]! / 2;
      at += widths[i]! + GAP_X;
    }
  }
  for (let s = 0; s < 8; s++) {
    for (const row of s % 2 ? [...all].reverse() : all) {
      for (const i of row) {
        const near = [...up[i]!, ...down[i]!];
        if (near.length) x[i] = near.reduce((a, k) => a + x[k]!, 0) / near.length;
      }
      spread(row, x, widths);
    }
  }
  let left = 0;
  let right = 0;
  for (let i = 0; i < n; i++) left = Math.min(left, x[i]! - widths[i]! / 2);
  for (let i = 0; i < n; i++) right = Math.max(right, (x[i]! -= left) + widths[i]! / 2);
  const y = new Array<number>(n).fill(0);
  const line = new Array<number>(n).fill(0);
  let height = 0;
  all.forEach((row, k) => {
    if (k > 0) height += behind[k] ? GAP_ROWS : gap;
    for (const i of row) {
      y[i] = height;
      line[i] = k;
    }
    height += row.reduce((m, i) => Math.max(m, typeof heights === "number" ? heights : heights[i]!), 0);
  });
  return { x, y, layer: line, width: right, height };
}

/** Keeps the order and takes the overlaps out, moving as little as it can: pushed right, then back. */
function spread(row: readonly number[], x: number[], widths: readonly number[]): void {
  const want = row.map((i) => x[i]!);
  for (let k = 1; k < row.length; k++) {
    const least = x[row[k - 1]!]! + (widths[row[k - 1]!]! + widths[row[k]!]!) / 2 + GAP_X;
    if (x[row[k]!]! < least) x[row[k]!] = least;
  }
  const drift = row.reduce((a, i, k) => a + x[i]! - want[k]!, 0) / Math.max(1, row.length);
  for (const i of row) x[i]! -= drift;
}
