// The events of a window by who encloses whom, equal stacks as one: a flame graph of a selection.
import type { Tree } from "../api/report";
import type { Lane, Window } from "../api/window";
import { headOf } from "./colour";

export interface Flame {
  tree: Tree;
  merged: number; // ps in rectangles that stand for several events
  total: number; // ps of what is not inside another event
  cut: boolean; // there were more kinds of stacks than are kept
}

interface Node {
  parent: number;
  name: string;
  total: number;
  inside: number; // of its children
  count: number;
}

interface Rect {
  begin: number;
  end: number;
  time: number; // busy
  name: string;
  count: number;
}

const MOST_NODES = 20_000;

function rectsOf(lanes: readonly Lane[], w: Window, from: number, to: number): Rect[] {
  const out: Rect[] = [];
  for (const lane of lanes)
    for (let i = 0; i < lane.begin.length; i++) {
      const begin = Math.max(from, lane.begin[i]!);
      const end = Math.min(to, lane.begin[i]! + lane.duration[i]!);
      if (end <= begin) continue;
      const count = lane.count?.[i] ?? 1;
      const name = count > 1 ? "(events too short to tell apart)" : headOf(w.names[lane.name[i]!]!) || "(no name)";
      out.push({ begin, end, time: count > 1 ? Math.min(end - begin, lane.busyOf?.[i] ?? end - begin) : end - begin, name, count });
    }
  return out.sort((a, b) => a.begin - b.begin || b.end - a.end);
}

/** `nameOf`: of a line. Times outside of [t0, t1] are cut off. */
export function flameOf(w: Window, t0: bigint, t1: bigint, nameOf: (line: number) => string): Flame {
  const from = Number(t0 - w.t0);
  const to = Number(t1 - w.t0);
  const nodes: Node[] = [];
  const children = new Map<string, number>();
  let merged = 0;
  let total = 0;
  let cut = false;
  const nodeOf = (parent: number, name: string): number => {
    const key = `${parent}\0${name}`;
    let at = children.get(key);
    if (at === undefined) {
      if (nodes.length >= MOST_NODES) return (cut = true), parent;
      at = nodes.push({ parent, name, total: 0, inside: 0, count: 0 }) - 1;
      children.set(key, at);
    }
    return at;
  };
  const byLine = new Map<number, Lane[]>();
  for (const lane of w.lanes) byLine.set(lane.line, [...(byLine.get(lane.line) ?? []), lane]);
  for (const [line, lanes] of byLine) {
    const root = nodeOf(-1, nameOf(line));
    if (root < 0) continue;
    const stack: { end: number; node: number }[] = [];
    for (const r of rectsOf(lanes, w, from, to)) {
      // What began earlier and ends before this does, does not enclose it.
      while (stack.length && stack[stack.length - 1]!.end < r.end) stack.pop();
      const outer = stack[stack.length - 1];
      const parent = outer?.node ?? root;
      const node = nodeOf(parent, r.name);
      if (r.count > 1) merged += r.time;
      if (!outer) {
        nodes[root]!.total += r.time;
        nodes[root]!.count += r.count;
        total += r.time;
      }
      if (node !== parent) {
        nodes[node]!.total += r.time;
        nodes[node]!.count += r.count;
        nodes[parent]!.inside += r.time;
      }
      stack.push({ end: r.end, node });
    }
  }
  return {
    merged, total, cut,
    tree: {
      id: "flame", total_nodes: nodes.length,
      columns: [
        { id: "total_time", label: "Total", unit: "ps", type: "number" }, { id: "self_time", label: "Self", unit: "ps", type: "number" },
        { id: "count", label: "Events", unit: "count", type: "number" },
      ],
      nodes: nodes.map((n) => ({ parent: n.parent, name: n.name, values: [Math.round(n.total), Math.round(Math.max(0, n.total - n.inside)), n.count] })),
    },
  };
}
