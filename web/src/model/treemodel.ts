// A report's tree: which rows show, and the rectangles of its icicle. No recursion: the depth is the
// profile's.
import type { Cell, Column, Tree } from "../api/report";
import { parseFilter, rowMatches, toCsv } from "./tablemodel";
import { asNumber } from "./units";

export interface Family {
  children: number[][];
  roots: number[];
  depth: Uint16Array;
}

export function familyOf(tree: Tree): Family {
  const children: number[][] = tree.nodes.map(() => []);
  const roots: number[] = [];
  const depth = new Uint16Array(tree.nodes.length);
  tree.nodes.forEach((n, i) => {
    const parent = n.parent;
    if (parent >= 0 && parent < i) {
      children[parent]!.push(i);
      depth[i] = Math.min(65_535, depth[parent]! + 1);
    } else {
      roots.push(i);
    }
  });
  return { children, roots, depth };
}

export function compareCells(a: Cell | undefined, b: Cell | undefined, descending: boolean): number {
  const none = (v: Cell | undefined): boolean => v === null || v === undefined;
  if (none(a) || none(b)) return none(a) ? (none(b) ? 0 : 1) : -1;
  const x = typeof a === "string" ? a.toLowerCase() : asNumber(a);
  const y = typeof b === "string" ? b.toLowerCase() : asNumber(b);
  if (x === y) return 0;
  return (x < y ? -1 : 1) * (descending ? -1 : 1);
}

/** Rows from top to bottom; `keep` are nodes to show with all that is above them (null: all). */
export function visibleRows(
  tree: Tree, family: Family, open: (i: number) => boolean, sortColumn: number, descending: boolean, keep: ReadonlySet<number> | null,
): number[] {
  const out: number[] = [];
  const ordered = (list: readonly number[]): number[] => {
    const kept = keep ? list.filter((i) => keep.has(i)) : [...list];
    if (sortColumn >= 0)
      kept.sort((a, b) => compareCells(tree.nodes[a]!.values[sortColumn], tree.nodes[b]!.values[sortColumn], descending) || a - b);
    return kept;
  };
  const stack = ordered(family.roots).reverse();
  while (stack.length) {
    const i = stack.pop()!;
    out.push(i);
    if (family.children[i]!.length && open(i)) stack.push(...ordered(family.children[i]!).reverse());
  }
  return out;
}

export interface Found {
  keep: Set<number>; // what matches, and all that is above it
  own: number[]; // what matches; of those that lie in each other the outermost
  errors: string[];
}

/** A tree's columns, its names the first. */
export const withName = (tree: Tree): Column[] => [{ id: "name", label: "Name", unit: "", type: "text" }, ...tree.columns];

/** Nodes that a table's filter leaves; null: there is none. */
export function found(tree: Tree, text: string): Found | null {
  const columns = withName(tree);
  const filter = parseFilter(text, columns);
  if (filter.terms.length === 0) return filter.errors.length ? { keep: new Set(tree.nodes.keys()), own: [], errors: filter.errors } : null;
  const out: Found = { keep: new Set(), own: [], errors: filter.errors };
  const inside = new Uint8Array(tree.nodes.length); // of one that matches
  tree.nodes.forEach((n, i) => {
    const above = n.parent >= 0 && inside[n.parent] === 1;
    const is = rowMatches([n.name, ...n.values], columns, filter);
    inside[i] = above || is ? 1 : 0;
    if (!is) return;
    if (!above) out.own.push(i);
    for (let at = i; at >= 0 && !out.keep.has(at); at = tree.nodes[at]!.parent) out.keep.add(at);
  });
  return out;
}

/** Nodes that match, with their ancestors. */
export const matching = (tree: Tree, text: string): Set<number> | null => found(tree, text)?.keep ?? null;

/** All nodes, each with the names from the root to it. */
export function treeCsv(tree: Tree): string {
  const paths: string[] = [];
  tree.nodes.forEach((n, i) => (paths[i] = n.parent >= 0 ? `${paths[n.parent]!} > ${n.name}` : n.name));
  const columns: Column[] = [{ id: "path", label: "Path", unit: "", type: "text" }, ...withName(tree)];
  return toCsv(columns, tree.nodes.map((n, i) => [paths[i]!, n.name, ...n.values]), columns.map((_, i) => i));
}

/** How many nodes with some weight there are below these, and they themselves. */
export function countBelow(tree: Tree, family: Family, weight: number, top: readonly number[]): number {
  const stack = [...top];
  let n = 0;
  while (stack.length) {
    const i = stack.pop()!;
    if (asNumber(tree.nodes[i]!.values[weight]) > 0) n++;
    for (const child of family.children[i]!) stack.push(child);
  }
  return n;
}

export interface Slab {
  node: number;
  x: number; // 0 … 1
  width: number;
  depth: number;
}

/** Each child as wide as its share of the weight, below its parent. */
export function icicle(tree: Tree, family: Family, weight: number, root: number, least: number): Slab[] {
  const value = (i: number): number => Math.max(0, asNumber(tree.nodes[i]!.values[weight]) || 0);
  const out: Slab[] = [];
  const top = root >= 0 ? [root] : family.roots;
  const stack: { list: readonly number[]; x: number; width: number; depth: number; whole: number }[] = [];
  const sumOf = (list: readonly number[]): number => list.reduce((a, i) => a + value(i), 0);
  stack.push({ list: top, x: 0, width: 1, depth: 0, whole: sumOf(top) });
  while (stack.length) {
    const { list, x, width, depth, whole } = stack.pop()!;
    const total = Math.max(whole, sumOf(list));
    if (total <= 0) continue;
    let at = x;
    for (const i of [...list].sort((a, b) => value(b) - value(a))) {
      const w = (value(i) / total) * width;
      if (w < least) break;
      out.push({ node: i, x: at, width: w, depth });
      if (family.children[i]!.length) stack.push({ list: family.children[i]!, x: at, width: w, depth: depth + 1, whole: value(i) });
      at += w;
    }
  }
  return out;
}

const ADDED = /^(self_time|time|share|wasted|occurrences|ops|base|base_delta|base_share)$/;
const USE = /^(flop|hbm)_utilization$/; // of the time that it took; where it is not told nothing was used
const DEEP = 64; // as many callers are told

/** fusion.12 -> fusion; what is no op of a program stays as it is called. */
const kind = (name: string): string => name.replace(/^%/, "").replace(/(\.clone|\.remat\d*)/g, "").replace(/([._]\d+)+$/, "") || name;

/** The tree the other way round: what ops of one kind took together, below it who called them, the innermost first. */
export function inverted(tree: Tree): Tree {
  const { children } = familyOf(tree);
  const adds = tree.columns.map((c) => ADDED.test(c.id));
  const uses = tree.columns.map((c) => USE.test(c.id));
  const time = tree.columns.findIndex((c) => c.id === "self_time");
  const out: { parent: number; name: string; values: Cell[] }[] = [];
  const places = new Map<string, number>();
  const put = (parent: number, name: string, leaf: number): number => {
    const key = `${parent}\u0001${name}`;
    let i = places.get(key);
    const values = tree.nodes[leaf]!.values;
    if (i === undefined) {
      places.set(key, (i = out.length));
      out.push({ parent, name, values: [...values] }); // of one op it says all
    } else {
      const n = out[i]!;
      const weights = [asNumber(n.values[time]) || 0, asNumber(values[time]) || 0] as const;
      n.values = n.values.map((v, k) => {
        const [a, b] = [asNumber(v), asNumber(values[k])];
        if (uses[k]) return Number.isNaN(a) && Number.isNaN(b) ? null : ((a || 0) * weights[0] + (b || 0) * weights[1]) / Math.max(1, weights[0] + weights[1]);
        if (!adds[k]) return null;
        return Number.isNaN(a) ? values[k] ?? null : Number.isNaN(b) ? v : a + b;
      });
    }
    return i;
  };
  tree.nodes.forEach((n, leaf) => {
    if (children[leaf]!.length) return;
    let at = put(-1, kind(n.name), leaf);
    // The root is all of it, which is no caller.
    for (let i = n.parent, deep = 0; i >= 0 && tree.nodes[i]!.parent >= 0 && deep < DEEP; i = tree.nodes[i]!.parent, deep++) at = put(at, tree.nodes[i]!.name, leaf);
  });
  return { ...tree, id: `${tree.id}_callers`, nodes: out, total_nodes: tree.total_nodes > tree.nodes.length ? out.length + tree.total_nodes - tree.nodes.length : out.length };
}
