// Finding rows by name, above their labels.
import { count } from "../../model/format";
import { Icon } from "../../widgets/icon";
import type { Trace } from "./trace";

export function RowFinder({ trace }: { trace: Trace }) {
  const { find, tracks } = trace.loader;
  const t = tracks.value;
  const text = find.value;
  const keys = (e: KeyboardEvent): void => {
    if (e.key !== "Escape") return;
    trace.findRows("");
    document.querySelector<HTMLElement>(".drawing canvas")?.focus();
  };
  const hidden = trace.hidden.value.size;
  return (
    <div class="finder">
      <Icon name="search" />
      <input
        type="text" spellcheck={false} autocomplete="off" placeholder="Find rows  ( l )" aria-label="Find rows"
        title="Parts of the names of planes and lines; -word leaves out"
        value={text} onKeyDown={keys} onInput={(e) => trace.findRows(e.currentTarget.value)}
      />
      {hidden > 0 && (
        <button type="button" class="button small" title="Show the hidden rows again" onClick={() => trace.showHidden()}>{count(hidden)} hidden</button>
      )}
      {text !== "" && (
        <>
          <output class={t?.rows_total === 0 ? "bad" : ""}>{t?.rows_total === undefined ? "" : count(t.rows_total)}</output>
          <button type="button" class="tool" title="All rows" aria-label="All rows" onClick={() => trace.findRows("")}><Icon name="close" /></button>
        </>
      )}
    </div>
  );
}

/** Behind the last row: how many there are, and the way to the others. */
export function MoreRows({ trace, y }: { trace: Trace; y: number }) {
  const t = trace.tracks.value;
  if (!t) return null;
  const text = trace.loader.find.value.trim();
  if (t.next == null)
    return text && t.rows_total === 0
      ? <div class="more-rows" style={{ transform: `translateY(${y}px)` }}>No row is called so.</div>
      : null;
  return (
    <div class="more-rows" style={{ transform: `translateY(${y}px)` }}>
      <span>{count(t.rows ?? 0)} of {count(t.rows_total ?? 0)} rows</span>
      <button type="button" class="button" disabled={trace.loader.busy.value} onClick={() => void trace.loader.more()}>Load more</button>
    </div>
  );
}
