// A graph in layers with clusters: ops that are open hold the ops of what they call. Each cluster is laid
// out by itself, and is then a large node of what is around it.
import { layered, type Edge } from "./layered";

export interface Nested {
  x: number[]; // middle of each node
  y: number[]; // top
  w: number[];
  h: number[];
  layer: number[]; // in the cluster that it is in
  width: number;
  height: number;
}

const PAD = 14;
export const HEAD = 34; // of a cluster: its name

/** Nodes that each is in, the innermost first; itself is the first. What is no tree is cut. */
function chains(within: readonly number[]): number[][] {
  return within.map((_, i) => {
    const chain = [i];
    for (let at = within[i]!; at >= 0 && at < within.length && chain.length <= within.length && !chain.includes(at); at = within[at]!) chain.push(at);
    return chain;
  });
}

/** `within`: the node that holds it, or -1. */
export function nested(widths: readonly number[], height: number, within: readonly number[], edges: readonly Edge[], gap?: number): Nested {
  const n = widths.length;
  const up = chains(within);
  const members = new Map<number, number[]>(); // by cluster; -1: all of it
  for (let i = 0; i < n; i++) {
    const cluster = up[i]![1] ?? -1;
    const list = members.get(cluster);
    if (list) list.push(i);
    else members.set(cluster, [i]);
  }
  // Each edge is one between two members of the innermost cluster that holds both.
  const inner = new Map<number, Map<number, Edge>>();
  for (const e of edges) {
    const [a, b] = [up[e.from]!, up[e.to]!];
    const at = new Map(a.map((id, k) => [id, k]));
    let k = 0;
    while (k < b.length && !at.has(b[k]!)) k++;
    const meet = k < b.length ? at.get(b[k]!)! : a.length;
    const [x, y] = [a[meet - 1], b[k - 1]];
    if (x === undefined || y === undefined || x === y) continue;
    const cluster = k < b.length ? b[k]! : -1;
    let list = inner.get(cluster);
    if (!list) inner.set(cluster, (list = new Map()));
    list.set(x * n + y, { from: x, to: y });
  }
  const w = [...widths];
  const h = new Array<number>(n).fill(height);
  const out: Nested = { x: new Array<number>(n).fill(0), y: new Array<number>(n).fill(0), w, h, layer: new Array<number>(n).fill(0), width: 0, height: 0 };
  const depth = (i: number): number => up[i]!.length;
  const clusters = [...members.keys()].sort((a, b) => (b < 0 ? 0 : depth(b)) - (a < 0 ? 0 : depth(a)));
  for (const c of clusters) {
    const list = members.get(c)!;
    const place = new Map(list.map((id, k) => [id, k]));
    const own = [...(inner.get(c)?.values() ?? [])].map((e) => ({ from: place.get(e.from)!, to: place.get(e.to)! }));
    const p = layered(list.map((id) => w[id]!), list.map((id) => h[id]!), own, gap);
    list.forEach((id, k) => {
      out.x[id] = p.x[k]!;
      out.y[id] = p.y[k]!;
      out.layer[id] = p.layer[k]!;
    });
    if (c < 0) {
      out.width = p.width;
      out.height = p.height;
    } else {
      w[c] = Math.max(w[c]!, p.width + 2 * PAD);
      h[c] = p.height + HEAD + PAD;
      const air = (w[c]! - p.width) / 2;
      for (const id of list) {
        out.x[id]! += air;
        out.y[id]! += HEAD;
      }
    }
  }
  // From the outermost in: places in a cluster are from its corner.
  for (const c of clusters.reverse()) {
    if (c < 0) continue;
    for (const id of members.get(c)!) {
      out.x[id]! += out.x[c]! - w[c]! / 2;
      out.y[id]! += out.y[c]!;
    }
  }
  return out;
}
