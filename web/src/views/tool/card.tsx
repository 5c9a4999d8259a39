// Everything a row says: long texts whole, hidden columns too.
import type { Cell, Table } from "../../api/report";
import { exact, show } from "../../model/units";
import { Copy } from "../../widgets/copy";
import { Icon } from "../../widgets/icon";

const LONG = 60;

/** `rows`: the page that lists what the row sums up. */
export function RowCard({ table, row, href, rows = null, close }: { table: Table; row: readonly Cell[]; href: string; rows?: { href: string; what: string } | null; close: () => void }) {
  const text = (i: number): string => show(row[i], table.columns[i]!.unit);
  const all = table.columns.map((_, i) => i).filter((i) => row[i] !== null && row[i] !== undefined && row[i] !== "");
  const long = all.filter((i) => typeof row[i] === "string" && text(i).length > LONG);
  const name = ["short_name", "counter", "unit"].map((id) => table.columns.findIndex((c) => c.id === id)).find((i) => i >= 0) ?? table.columns.findIndex((c) => c.type === "op");
  return (
    <aside class="row-card" aria-label={`The chosen row of ${table.title}`}>
      <header>
        <h3>{text(name >= 0 ? name : all[0] ?? 0)}</h3>
        {href && <a class="button" href={href}><Icon name="timeline" /> In the timeline</a>}
        {rows && rows.href && <a class="button" href={rows.href}><Icon name="table" /> {rows.what}</a>}
        <Copy label="Copy" title="Copy all values of the row" text={() => all.map((i) => `${table.columns[i]!.label}: ${text(i)}`).join("\n")} />
        <button type="button" class="tool" aria-label="Close" title="Close" onClick={close}><Icon name="close" /></button>
      </header>
      <dl class="facts">
        {all.filter((i) => !long.includes(i)).map((i) => {
          const c = table.columns[i]!;
          return <div key={c.id} title={[c.definition, exact(row[i], c.unit)].filter(Boolean).join("\n")}><dt>{c.label}</dt><dd>{text(i)}</dd></div>;
        })}
      </dl>
      {long.map((i) => (
        <div key={i} class="long-text">
          <p class="row"><b>{table.columns[i]!.label}</b> <Copy text={() => text(i)} title={`Copy ${table.columns[i]!.label}`} /></p>
          <pre>{text(i)}</pre>
        </div>
      ))}
    </aside>
  );
}
