// What this browser keeps of a run: labels, a note, and that it is hidden.
import { useLayoutEffect, useRef } from "preact/hooks";
import { plural } from "../../model/format";
import { parseLabels, type RunMark } from "../../model/runmarks";
import { mark } from "../../shell/runmarks";
import { Icon } from "../../widgets/icon";

export function MarkButton({ run, m, open }: { run: string; m: RunMark | undefined; open: () => void }) {
  return (
    <button type="button" class="pin-run" aria-pressed={Boolean(m)} aria-label={`Labels and note of ${run}`} title="Labels, a note, or hide it: in this browser" onClick={open}>
      <Icon name="label" />
    </button>
  );
}

/** Of one run; what is written is kept when a field is left. The list is drawn anew meanwhile, which
 * must not put back what the fields held before. */
export function MarkDialog({ root, run, m, hide, close }: { root: string; run: string; m: RunMark | undefined; hide: () => void; close: () => void }) {
  const box = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => box.current?.showModal(), []);
  const ended = (act: () => void) => () => (box.current?.close(), act());
  return (
    <dialog ref={box} class="help mark-dialog" aria-label={`Labels and note of ${run}`} onClose={close} onClick={(e) => e.target === box.current && box.current?.close()}>
      <div class="help-head">
        <h2>{run}</h2>
        <button type="button" class="tool" aria-label="Close" onClick={() => box.current?.close()}><Icon name="close" /></button>
      </div>
      <form onSubmit={(e) => (e.preventDefault(), box.current?.close())}>
        <label>Labels
          <input type="text" defaultValue={m?.labels.join(", ") ?? ""} placeholder="baseline, tuned" onChange={(e) => mark(root, run, { labels: parseLabels(e.currentTarget.value) })} />
        </label>
        <label>Note
          <textarea rows={3} defaultValue={m?.note ?? ""} onChange={(e) => mark(root, run, { note: e.currentTarget.value.trim() })} />
        </label>
        <p class="none">Kept in this browser: nothing is written beside the profiles.</p>
        <p class="row">
          <button type="button" class="button" onClick={ended(m?.hidden ? () => mark(root, run, { hidden: false }) : hide)}>{m?.hidden ? "Show it again" : "Hide it"}</button>
          <button type="submit" class="button primary push">Done</button>
        </p>
      </form>
    </dialog>
  );
}

/** Below the name of a run. */
export function Marks({ m, choose }: { m: RunMark | undefined; choose: (label: string) => void }) {
  if (!m || (m.labels.length === 0 && !m.note)) return null;
  return (
    <span class="marks">
      {m.labels.map((l) => <button key={l} type="button" class="run-label" title={`Only runs with the label ${l}`} onClick={() => choose(l)}>{l}</button>)}
      {m.note && <span class="run-note cut" title={m.note}>{m.note}</span>}
    </span>
  );
}

export function HiddenLine({ last, undo, hidden, shown, flip }: { last: string; undo: () => void; hidden: number; shown: boolean; flip: () => void }) {
  if (hidden === 0) return null;
  return (
    <p class="none hidden-line" role="status">
      {last && <>Hidden: <b>{last}</b>. <button type="button" class="link" onClick={undo}>Undo</button> · </>}
      {plural(hidden, "run")} {hidden === 1 ? "is" : "are"} hidden in this browser. <button type="button" class="link" onClick={flip}>{shown ? "Hide" : "Show"} {hidden === 1 ? "it" : "them"}</button>
    </p>
  );
}
