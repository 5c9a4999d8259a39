// A tree as a table: arrow keys open and close, the order is that of a column within each parent.
import { useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import type { Cell, Tree } from "../api/report";
import { count } from "../model/format";
import { px } from "../layout/unit";
import { isNumeric, type Sort } from "../model/tablemodel";
import { familyOf, matching, visibleRows } from "../model/treemodel";
import { asNumber, exact, show } from "../model/units";
import { Delta } from "./delta";
import { Icon } from "./icon";
import { Head, rowHeight } from "./table";

const AROUND = 12;
const TALL = 22; // rows in sight
const nameWidth = (): number => px(300); // px, at least

export interface TreeProps {
  tree: Tree;
  title: string;
  q: string;
  sort: Sort | null;
  onSort: (s: Sort | null) => void;
  isChosen?: (i: number) => boolean;
  isOp: (i: number) => boolean; // can be chosen
  onChoose?: (i: number) => void;
  link?: (i: number) => string;
  columns: readonly number[]; // those that are shown
}

export function TreeTable(p: TreeProps) {
  const { tree } = p;
  const scroller = useRef<HTMLDivElement>(null);
  const family = useMemo(() => familyOf(tree), [tree]);
  const opened = useSignal<ReadonlyMap<number, boolean>>(new Map());
  const top = useSignal(0);
  const cursor = useSignal(-1);
  const sized = useSignal<Record<string, number>>({});
  const keep = useMemo(() => matching(tree, p.q), [tree, p.q]);
  const isOpen = (i: number): boolean => opened.value.get(i) ?? (keep ? true : family.depth[i]! < (family.roots.length === 1 ? 2 : 1));
  const at = p.sort ? tree.columns.findIndex((c) => c.id === p.sort!.column) : -1;
  const rows = visibleRows(tree, family, isOpen, at, p.sort?.descending ?? true, keep);
  const columns = p.columns;
  const toggle = (i: number): void => {
    opened.value = new Map(opened.peek()).set(i, !isOpen(i));
  };
  const long = rows.length > TALL;
  const from = long ? Math.max(0, Math.floor(top.value / rowHeight()) - AROUND) : 0;
  const to = long ? Math.min(rows.length, Math.ceil(top.value / rowHeight()) + TALL + AROUND) : rows.length;
  const see = (k: number): void => {
    const box = scroller.current!;
    cursor.value = k;
    const y = k * rowHeight();
    if (y < box.scrollTop) box.scrollTop = y;
    else if (y > box.scrollTop + box.clientHeight - 3 * rowHeight()) box.scrollTop = y - box.clientHeight + 3 * rowHeight();
  };
  const keys = (e: KeyboardEvent): void => {
    if (e.target !== e.currentTarget) return;
    const k = Math.min(cursor.peek(), rows.length - 1);
    const node = rows[k];
    const has = node !== undefined && family.children[node]!.length > 0;
    if (e.key === "ArrowDown") see(Math.min(rows.length - 1, k + 1));
    else if (e.key === "ArrowUp") see(Math.max(0, k - 1));
    else if (e.key === "Home") see(0);
    else if (e.key === "End") see(rows.length - 1);
    else if (e.key === "ArrowRight" && node !== undefined) has && !isOpen(node) ? toggle(node) : see(Math.min(rows.length - 1, k + 1));
    else if (e.key === "ArrowLeft" && node !== undefined) {
      if (has && isOpen(node)) toggle(node);
      else see(Math.max(0, rows.indexOf(tree.nodes[node]!.parent)));
    } else if (e.key === "Enter" && node !== undefined) p.isOp(node) ? p.onChoose?.(node) : toggle(node);
    else return;
    e.preventDefault();
  };
  const change = tree.columns.findIndex((c) => c.id === "base_delta");
  const most = useMemo(() => tree.nodes.reduce((m, n) => (change < 0 || n.parent < 0 ? m : Math.max(m, Math.abs(asNumber(n.values[change])) || 0)), 0), [tree]);
  const widthOf = (i: number): number => sized.value[tree.columns[i]!.id] ?? (isNumeric(tree.columns[i]!) ? px(Math.min(150, Math.max(92, tree.columns[i]!.label.length * 7 + 34))) : px(170));
  if (rows.length === 0) return <p class="none">{tree.nodes.length === 0 ? "The tree is empty." : "Nothing matches."}</p>;
  return (
    <div
      ref={scroller} class={`table-scroll ${long ? "long" : ""}`} tabIndex={0} role="region" aria-label={`${p.title}, ${count(rows.length)} rows`}
      style={long ? { height: `${TALL * rowHeight() + px(34)}px` } : {}} onScroll={(e) => (top.value = e.currentTarget.scrollTop)} onKeyDown={keys}
    >
      <table class="data tree" style={{ minWidth: `${nameWidth() + columns.reduce((a, i) => a + widthOf(i), 0)}px` }} role="treegrid" aria-label={p.title} aria-rowcount={rows.length + 1}>
        <colgroup>
          <col />
          {columns.map((i) => <col key={i} style={{ width: `${widthOf(i)}px` }} />)}
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            <th scope="col"><span class="sorter-label">Name</span></th>
            {columns.map((i) => <Head key={tree.columns[i]!.id} c={tree.columns[i]!} pin={false} sort={p.sort} onSort={p.onSort} px={widthOf(i)} sized={sized} />)}
          </tr>
        </thead>
        <tbody>
          {from > 0 && <tr class="spacer" aria-hidden="true" style={{ height: `${from * rowHeight()}px` }}><td colSpan={columns.length + 1} /></tr>}
          {rows.slice(from, to).map((i, n) => {
            const node = tree.nodes[i]!;
            const has = family.children[i]!.length > 0;
            const href = p.link?.(i) ?? "";
            return (
              <tr
                key={i} aria-level={family.depth[i]! + 1} aria-expanded={has ? isOpen(i) : undefined} aria-rowindex={from + n + 2}
                aria-selected={p.isChosen?.(i) ?? false} class={`can ${p.isChosen?.(i) ? "chosen" : ""} ${from + n === cursor.value ? "cursor" : ""}`}
                onClick={(e) => !(e.target as Element).closest("a,button") && (has ? toggle(i) : p.isOp(i) && p.onChoose?.(i))}
              >
                <td class="tree-name" title={node.name} style={{ paddingLeft: `${8 + Math.min(family.depth[i]!, 24) * px(16)}px` }}>
                  {has
                    ? <button type="button" class="twist" tabIndex={-1} aria-label={isOpen(i) ? `Close ${node.name}` : `Open ${node.name}`} onClick={() => toggle(i)}><Icon name={isOpen(i) ? "down" : "right"} /></button>
                    : <span class="twist" />}
                  {p.onChoose && p.isOp(i)
                    ? <button type="button" class="link op-name" onClick={() => p.onChoose!(i)}>{node.name}</button>
                    : <span class="tree-label">{node.name}</span>}
                  {has && <span class="ago">{count(family.children[i]!.length)}</span>}
                  {href && <a href={href} class="go" title="Show it in the timeline" aria-label="Show it in the timeline"><Icon name="timeline" /></a>}
                </td>
                {columns.map((k) => <TreeCell key={k} v={node.values[k]} c={tree.columns[k]!} most={most} />)}
              </tr>
            );
          })}
          {to < rows.length && <tr class="spacer" aria-hidden="true" style={{ height: `${(rows.length - to) * rowHeight()}px` }}><td colSpan={columns.length + 1} /></tr>}
        </tbody>
      </table>
    </div>
  );
}

function TreeCell({ v, c, most }: { v: Cell | undefined; c: Tree["columns"][number]; most: number }) {
  const numeric = isNumeric(c);
  if (c.id === "base_delta" && v !== null && v !== undefined) return <td class="number"><Delta v={v} unit={c.unit} most={most} worse /></td>;
  if ((v === null || v === undefined || v === "") && !numeric) return <td />;
  if (v === null || v === undefined) return <td class={`na ${numeric ? "number" : ""}`} title="n/a: not known for this node">n/a</td>;
  if (c.unit === "fraction" && typeof v === "number")
    return (
      <td class={`number frac ${/wast/.test(c.id) ? "loss" : ""}`} title={exact(v, c.unit)}>
        <span class="frac-bar" style={{ width: `${Math.min(100, Math.max(0, v * 100))}%` }} />{show(v, c.unit)}
      </td>
    );
  return <td class={numeric ? "number" : ""} title={numeric ? exact(v, c.unit) : show(v, c.unit)}>{show(v, c.unit)}</td>;
}
