// A report's table: rows in sight only, sticky head and totals, sorted and filtered here, taken away
// as CSV or Markdown.
import { useSignal, type Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { Cell, Column, Table } from "../api/report";
import { px, unit } from "../layout/unit";
import { commonStart, fullName, naturalWidth, shownColumns } from "../model/columns";
import { count, plural } from "../model/format";
import { toggled } from "../model/sets";
import {
  arrange, choose, groupable, grouped, groupFilter, isNumeric, parseFilter, sorted, totals, toCsv, toMarkdown, type Sort,
} from "../model/tablemodel";
import { asNumber, exact, show } from "../model/units";
import { Copy } from "./copy";
import { Icon } from "./icon";
import { Popover } from "./popover";
import { save } from "./save";
import { useWidth } from "./size";

export const rowHeight = (): number => px(29); // as in tool.css
const headHeight = (): number => px(32);
const AROUND = 12; // rows drawn beyond those in sight
const LONG = 18; // rows; more and the table scrolls in itself

export interface TableProps {
  table: Table;
  q: string;
  onFilter: (q: string) => void;
  sort: Sort | null;
  onSort: (s: Sort | null) => void;
  changed: ReadonlySet<string>; // columns shown or hidden against the usual
  onColumns: (ids: Set<string>) => void;
  isChosen?: (row: readonly Cell[]) => boolean;
  onChoose?: (row: readonly Cell[] | null) => void;
  link?: (row: readonly Cell[]) => string; // "": none
  card?: (row: readonly Cell[]) => ComponentChildren;
  cell?: (row: readonly Cell[], column: number) => ComponentChildren | undefined;
  where: string; // of the page, for "copy as Markdown"
  whyNull?: (c: Column) => string;
  tall?: boolean;
  extra?: ComponentChildren;
  group?: string; // id of the column that the rows are grouped by
  onGroup?: (column: string) => void;
  onOpenGroup?: (q: string) => void; // the filter that leaves its rows
}

export function DataTable(p: TableProps) {
  const { table } = p;
  const by = p.onGroup && p.group ? table.columns.findIndex((c) => c.id === p.group) : -1;
  return by >= 0 ? <Groups p={p} by={by} /> : <Rows {...p} />;
}

function GroupChoice({ p }: { p: TableProps }) {
  const { table, onGroup } = p;
  const at = useMemo(() => (onGroup ? groupable(table) : []), [table, Boolean(onGroup)]);
  if (!onGroup || at.length === 0) return null;
  return (
    <label class="choice">Group
      <select value={p.group ?? ""} aria-label={`Group ${table.title} by`} onChange={(e) => onGroup(e.currentTarget.value)}>
        <option value="">not</option>
        {at.map((i) => <option key={i} value={table.columns[i]!.id}>by {table.columns[i]!.label.toLowerCase()}</option>)}
      </select>
    </label>
  );
}

/** One row a group; a click shows its rows. */
function Groups({ p, by }: { p: TableProps; by: number }) {
  const { table } = p;
  const filter = useMemo(() => parseFilter(p.q, table.columns), [p.q, table.columns]);
  const made = useMemo(() => grouped(table, arrange(table, filter, null), by), [table, filter, by]);
  const sort = p.sort && made.columns.some((c) => c.id === p.sort!.column) ? p.sort : made.sort;
  const kept = table.total_rows > table.rows.length;
  return (
    <Rows
      table={made} q={p.q} onFilter={p.onFilter} filtered sort={sort} onSort={p.onSort} where={p.where}
      changed={new Set([...p.changed].filter((id) => id !== p.group))} onColumns={p.onColumns}
      extra={<><GroupChoice p={{ ...p, onGroup: p.onGroup! }} />{kept && p.extra}</>}
      onChoose={(row) => row && p.onOpenGroup?.(groupFilter(p.q, table.columns[by]!, row[0] ?? null))}
      note={kept ? `Groups of the ${count(table.rows.length)} rows that are here, of ${count(table.total_rows)}` : ""}
    />
  );
}

function Rows(p: TableProps & { filtered?: boolean; note?: string }) {
  const { table } = p;
  const words = p.filtered ? "" : p.q; // groups were made of the rows that match
  const filter = useMemo(() => parseFilter(words, table.columns), [words, table.columns]);
  const chosen = useMemo(() => choose(table, filter), [table, filter]);
  const order = useMemo(() => sorted(table, chosen, p.sort), [table, chosen, p.sort?.column, p.sort?.descending]);
  const shown = useMemo(() => shownColumns(table, p.changed), [table, [...p.changed].join()]);
  const picked = function* (): Iterable<readonly Cell[]> {
    for (const i of order) yield table.rows[i]!;
  };
  return (
    <section class="table-block" aria-label={table.title}>
      <div class="table-head">
        <h2>{table.title}</h2>
        <TableCount table={table} found={order.length} filtered={filter.terms.length > 0} />
        {table.rows.length > 0 && <><search class="search table-search">
          <Icon name="search" />
          <input
            data-filter type="text" spellcheck={false} autocomplete="off" aria-label={`Filter ${table.title}`}
            placeholder="word  -word  column:word  column>10us" value={p.q} aria-invalid={filter.errors.length > 0}
            title="Words must all be found; -word must not; column:word looks in one column; column>10us compares"
            onInput={(e) => p.onFilter(e.currentTarget.value)}
          />
        </search>
        <div class="table-tools">
          {!p.filtered && <GroupChoice p={p} />}
          {p.extra}
          <ColumnChooser table={table} shown={shown} changed={p.changed} onColumns={p.onColumns} />
          <Copy
            label="Markdown" title="Copy the rows as Markdown, with the link"
            text={() => `**${table.title}** · ${p.where}\n\n${toMarkdown(table.columns, first(picked(), 200), shown.columns)}${order.length > 200 ? `\n${count(order.length - 200)} more rows\n` : ""}`}
          />
          <button
            type="button" class="button" title="Save the rows as CSV: all columns, exact values"
            onClick={() => save(`${table.id}.csv`, "text/csv", toCsv(table.columns, picked(), table.columns.map((_, i) => i)))}
          >
            <Icon name="download" /> CSV
          </button>
        </div></>}
      </div>
      {filter.errors.length > 0 && <p class="filter-error" role="alert">{filter.errors.join("; ")}</p>}
      {(p.note || table.note) && <p class="table-note">{p.note || table.note}</p>}
      {order.length === 0
        ? <p class="none">{table.rows.length === 0 ? "No rows." : <>No row matches. <button type="button" class="link" onClick={() => p.onFilter("")}>Clear the filter</button></>}</p>
        : <Grid {...p} rows={chosen} order={order} columns={shown.columns} />}
      {shown.empty.length > 0 && order.length > 0 && (
        <p class="table-note">
          Not shown, as no row has a value: {shown.empty.map((i) => table.columns[i]!.label).join(", ")}.
        </p>
      )}
    </section>
  );
}

function* first<T>(from: Iterable<T>, n: number): Iterable<T> {
  for (const x of from) {
    if (n-- <= 0) return;
    yield x;
  }
}

function TableCount({ table, found, filtered }: { table: Table; found: number; filtered: boolean }) {
  const rows = table.rows.length;
  return (
    <output class="table-count">
      {filtered ? `${count(found)} of ${plural(rows, "row")}` : plural(rows, "row")}
      {table.total_rows > rows && ` of ${count(table.total_rows)}`}
    </output>
  );
}

export function ColumnChooser({ table, shown, changed, onColumns }: {
  table: Pick<Table, "columns">; shown: { columns: number[]; empty: number[] }; changed: ReadonlySet<string>; onColumns: (ids: Set<string>) => void;
}) {
  const flip = (id: string): void => onColumns(toggled(changed, id));
  return (
    <Popover title="Choose columns" right label={<><Icon name="columns" /> Columns</>}>
      {() => (
        <>
          <div class="chooser">
            {table.columns.map((c, i) => (
              <label key={c.id} title={c.definition ?? ""}>
                <input type="checkbox" checked={shown.columns.includes(i)} onChange={() => flip(c.id)} />
                <span>{c.label}{shown.empty.includes(i) && <span class="ago"> no values</span>}</span>
              </label>
            ))}
          </div>
          {changed.size > 0 && <button type="button" class="button" onClick={() => onColumns(new Set())}>As usual</button>}
        </>
      )}
    </Popover>
  );
}

type GridProps = TableProps & { rows: Uint32Array; order: Uint32Array; columns: number[] }; // rows: as they stand
type RowProps = GridProps & { starts: ReadonlyMap<number, number>; bar: { column: number; most: number } | null };

/** Where no column is a share, the amount that a row is about gets the bar. */
function barOf(table: Table, columns: readonly number[]): { column: number; most: number } | null {
  if (table.rows.length < 3 || columns.some((i) => table.columns[i]!.unit === "fraction")) return null;
  const column = columns.find((i) => /^(ps|ns|bytes|count)$/.test(table.columns[i]!.unit) && table.columns[i]!.id === (table.sort?.column ?? ""));
  if (column === undefined) return null;
  const most = table.rows.reduce((m, r) => Math.max(m, asNumber(r[column]) || 0), 0);
  return most > 0 ? { column, most } : null;
}

function Grid(p: GridProps) {
  const { table, order, columns } = p;
  const scroller = useRef<HTMLDivElement>(null);
  const width = useWidth(scroller, 900);
  const top = useSignal(0);
  const cursor = useSignal(-1);
  const sized = useSignal<Record<string, number>>({});
  const widths = useMemo(() => columns.map((i) => naturalWidth(table.columns[i]!, table.rows, i)), [table, columns, unit()]);
  const starts = useMemo(
    () => new Map(columns.filter((i) => table.columns[i]!.type === "text").map((i) => [i, commonStart(table.rows, i)])),
    [table, columns],
  );
  const bar = useMemo(() => barOf(table, columns), [table, columns]);
  const link = p.link;
  const linked = Boolean(link && table.rows.some((r) => link(r)));
  const px = columns.map((i, k) => sized.value[table.columns[i]!.id] ?? widths[k]!);
  const sum = px.reduce((a, b) => a + b, 0) + (linked ? 34 : 0);
  const wide = widest(table.columns, columns, px);
  const fits = sum < width.value;

  const long = order.length > LONG;
  const height = long ? (p.tall ? 30 : LONG) * rowHeight() + headHeight() : 0;
  const from = long ? Math.max(0, Math.floor(top.value / rowHeight()) - AROUND) : 0;
  const to = long ? Math.min(order.length, Math.ceil((top.value + height) / rowHeight()) + AROUND) : order.length;
  const chosen = p.isChosen ? findChosen(table, order, p.isChosen) : -1;

  // The chosen row comes into sight when it was chosen elsewhere.
  useLayoutEffect(() => {
    const box = scroller.current;
    if (!box || chosen < 0 || !long) return;
    const y = chosen * rowHeight();
    if (y < box.scrollTop || y > box.scrollTop + box.clientHeight - headHeight() - 2 * rowHeight()) box.scrollTop = Math.max(0, y - box.clientHeight / 3);
  }, [chosen, table]);

  const walk = (e: KeyboardEvent): void => {
    if (e.target !== e.currentTarget) return;
    const box = scroller.current!;
    const last = order.length - 1;
    const at = cursor.peek() < 0 ? (chosen < 0 ? -1 : chosen) : cursor.peek();
    const page = Math.max(1, Math.floor(box.clientHeight / rowHeight()) - 2);
    const moves: Record<string, number> = {
      ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: last,
    };
    if (e.key === "Enter" && at >= 0) {
      e.preventDefault();
      p.onChoose?.(table.rows[order[at]!]!);
      return;
    }
    if (moves[e.key] === undefined) return;
    e.preventDefault();
    const next = Math.min(last, Math.max(0, moves[e.key]!));
    cursor.value = next;
    const y = next * rowHeight();
    if (y < box.scrollTop) box.scrollTop = y;
    else if (y > box.scrollTop + box.clientHeight - headHeight() - 2 * rowHeight()) box.scrollTop = y - box.clientHeight + headHeight() + 2 * rowHeight();
  };

  const sumRow = useMemo(() => totals(table, p.rows), [table, p.rows]);
  const summed = order.length > 1 && sumRow.some((v, i) => v !== null && columns.includes(i));
  return (
    <>
      <div
        ref={scroller} class={`table-scroll ${long ? "long" : ""}`} tabIndex={0} role="region" aria-label={`${table.title}, ${plural(order.length, "row")}`}
        style={long ? { height: `${Math.min(height, order.length * rowHeight() + headHeight() + 2 * rowHeight())}px` } : {}}
        onScroll={(e) => (top.value = e.currentTarget.scrollTop)} onKeyDown={walk}
      >
        <table class="data" aria-rowcount={order.length + 1} style={{ width: fits ? "100%" : `${sum}px` }}>
          <colgroup>
            {linked && <col style={{ width: "34px" }} />}
            {columns.map((i, k) => <col key={table.columns[i]!.id} style={{ width: fits && k === wide ? "auto" : `${px[k]}px` }} />)}
          </colgroup>
          <thead>
            <tr aria-rowindex={1}>
              {linked && <th scope="col" class="go-head"><span class="unseen">Timeline</span></th>}
              {columns.map((i, k) => <Head key={table.columns[i]!.id} c={table.columns[i]!} pin={k === 0} sort={p.sort} onSort={p.onSort} px={px[k]!} sized={sized} />)}
            </tr>
          </thead>
          <tbody>
            {from > 0 && <tr class="spacer" aria-hidden="true" style={{ height: `${from * rowHeight()}px` }}><td colSpan={columns.length + (linked ? 1 : 0)} /></tr>}
            {Array.from(order.subarray(from, to), (i, k) => (
              <Row
                key={i} p={{ ...p, starts, bar }} row={table.rows[i]!} index={from + k} linked={linked}
                chosen={from + k === chosen} cursor={from + k === cursor.value}
              />
            ))}
            {to < order.length && <tr class="spacer" aria-hidden="true" style={{ height: `${(order.length - to) * rowHeight()}px` }}><td colSpan={columns.length + (linked ? 1 : 0)} /></tr>}
          </tbody>
          {(summed || table.rest) && (
            <tfoot>
              {table.rest && <RestRow p={p} linked={linked} />}
              {summed && (
                <tr>
                  {linked && <td />}
                  {columns.map((i, k) => {
                    const v = sumRow[i];
                    const c = table.columns[i]!;
                    return v !== null && v !== undefined
                      ? <td key={c.id} class="number" title={exact(v, c.unit)}>{show(v, c.unit)}</td>
                      : <td key={c.id}>{k === 0 && (px[0]! > 120 ? `Sum of ${plural(order.length, "row")}` : "Sum")}</td>;
                  })}
                </tr>
              )}
            </tfoot>
          )}
        </table>
      </div>
      {chosen >= 0 && p.card && p.card(table.rows[order[chosen]!]!)}
    </>
  );
}

function RestRow({ p, linked }: { p: GridProps; linked: boolean }) {
  const { table, columns } = p;
  const rest = table.rest!;
  return (
    <tr class="rest">
      {linked && <td />}
      {columns.map((i, k) => {
        const c = table.columns[i]!;
        const v = rest[c.id];
        if (k === 0) return <td key={c.id}>{count(rest["rows"] ?? table.total_rows - table.rows.length)} rows not listed</td>;
        return v === undefined ? <td key={c.id} /> : <td key={c.id} class="number" title={exact(v, c.unit)}>{show(v, c.unit)}</td>;
      })}
    </tr>
  );
}

function findChosen(table: Table, order: Uint32Array, is: (row: readonly Cell[]) => boolean): number {
  for (let k = 0; k < order.length; k++) if (is(table.rows[order[k]!]!)) return k;
  return -1;
}

/** The text column that takes the room that is left. */
function widest(all: readonly Column[], picked: readonly number[], px: readonly number[]): number {
  let at = -1;
  picked.forEach((i, k) => {
    if (!isNumeric(all[i]!) && (at < 0 || px[k]! > px[at]!)) at = k;
  });
  return at;
}

export function Head({ c, pin, sort, onSort, px, sized }: {
  c: Column; pin: boolean; sort: Sort | null; onSort: (s: Sort | null) => void; px: number; sized: Signal<Record<string, number>>;
}) {
  const at = sort?.column === c.id ? (sort.descending ? "descending" : "ascending") : "none";
  const numeric = isNumeric(c);
  // Numbers are wanted largest first.
  const next = (): Sort => ({ column: c.id, descending: at === "none" ? numeric : at === "ascending" });
  const set = (w: number): void => {
    sized.value = { ...sized.peek(), [c.id]: Math.round(Math.min(1200, Math.max(46, w))) };
  };
  const drag = (e: PointerEvent): void => {
    const handle = e.currentTarget as HTMLElement;
    e.preventDefault();
    handle.setPointerCapture(e.pointerId);
    const x0 = e.clientX;
    const w0 = handle.closest("th")!.getBoundingClientRect().width;
    const move = (m: PointerEvent): void => set(w0 + m.clientX - x0);
    handle.addEventListener("pointermove", move);
    handle.addEventListener("lostpointercapture", () => handle.removeEventListener("pointermove", move), { once: true });
  };
  const widen = (e: KeyboardEvent): void => {
    const step = e.key === "ArrowRight" ? 16 : e.key === "ArrowLeft" ? -16 : 0;
    if (!e.shiftKey || step === 0) return;
    e.preventDefault();
    set((e.currentTarget as HTMLElement).closest("th")!.getBoundingClientRect().width + step);
  };
  return (
    <th scope="col" class={`${numeric ? "number" : ""} ${pin ? "pin" : ""}`} aria-sort={at}>
      <button
        type="button" class="sorter" title={[c.label, c.definition, c.unit && c.unit !== "count" ? `in ${c.unit}` : ""].filter(Boolean).join("\n")}
        aria-keyshortcuts="Shift+ArrowRight Shift+ArrowLeft" onClick={() => onSort(next())} onKeyDown={widen}
      >
        <span class="sorter-label">{c.label}</span>
        <span class="arrow" aria-hidden="true">{at === "none" ? "" : at === "descending" ? "↓" : "↑"}</span>
      </button>
      <span
        class="resize" role="separator" aria-orientation="vertical" aria-label={`Width of ${c.label}`} aria-valuenow={px} aria-valuemin={46} aria-valuemax={1200} tabIndex={-1}
        onPointerDown={drag} onDblClick={() => { const { [c.id]: _, ...rest } = sized.peek(); sized.value = rest; }}
      />
    </th>
  );
}

function Row({ p, row, index, linked, chosen, cursor }: {
  p: RowProps; row: readonly Cell[]; index: number; linked: boolean; chosen: boolean; cursor: boolean;
}) {
  const href = linked ? p.link!(row) : "";
  const choose = (e: MouseEvent): void => {
    if ((e.target as Element).closest("a,button,input") || String(window.getSelection() ?? "") !== "") return;
    p.onChoose?.(chosen ? null : row);
  };
  return (
    <tr
      class={`${chosen ? "chosen" : ""} ${cursor ? "cursor" : ""} ${p.onChoose ? "can" : ""}`} aria-rowindex={index + 2}
      aria-current={chosen ? "true" : undefined} onClick={p.onChoose ? choose : undefined}
    >
      {linked && (
        <td class="go-cell">
          {href && <a href={href} class="go" title="Show it in the timeline" aria-label="Show it in the timeline"><Icon name="timeline" /></a>}
        </td>
      )}
      {p.columns.map((i) => <CellOf key={p.table.columns[i]!.id} p={p} row={row} i={i} />)}
    </tr>
  );
}

function CellOf({ p, row, i }: { p: RowProps; row: readonly Cell[]; i: number }) {
  const c = p.table.columns[i]!;
  const v = row[i];
  const numeric = isNumeric(c);
  const pin = p.columns[0] === i ? "pin" : "";
  const own = p.cell?.(row, i);
  if (own !== undefined) return <td class={`${numeric ? "number" : ""} ${pin}`}>{own}</td>;
  if (v === null || v === undefined) return <td class={`na ${numeric ? "number" : ""} ${pin}`} title={p.whyNull?.(c) ?? "The profile does not say"}>n/a</td>;
  if (c.unit === "fraction" && typeof v === "number")
    return (
      <td class={`number frac ${v > 1.0001 ? "over" : ""}`} title={exact(v, c.unit)}>
        <span class="frac-bar" style={{ width: `${Math.min(100, Math.max(0, v * 100))}%` }} />{show(v, c.unit)}
      </td>
    );
  if (p.bar?.column === i && numeric)
    return (
      <td class={`number frac ${pin}`} title={exact(v, c.unit)}>
        <span class="frac-bar" style={{ width: `${Math.min(100, Math.max(0, (asNumber(v) / p.bar.most) * 100))}%` }} />{show(v, c.unit)}
      </td>
    );
  const text = show(v, c.unit);
  const start = p.starts.get(i) ?? 0; // what all rows begin with tells them not apart
  if (c.type === "op" && p.onChoose)
    return <td class={pin} title={text}><button type="button" class="link op-name" onClick={() => p.onChoose!(row)}>{text}</button></td>;
  if (c.id === "counter" || c.id === "operation") return <td class={`tail ${pin}`} title={text}><bdi>{text}</bdi></td>; // its end tells it from the others
  return <td class={`${numeric ? "number" : ""} ${pin}`} title={numeric ? exact(v, c.unit) : fullName(p.table, row, i) || text}>{start ? `…${text.slice(start)}` : text}</td>;
}
