// The events of one row that are in view, as a table: what the canvas shows, for screen readers, and for whoever wants exact times in a row.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { asProblem, isAbort, type Problem } from "../../api/client";
import { big } from "../../api/json";
import type { Hit, SearchAnswer } from "../../api/types";
import { duration, exactNs, plural, timestamp } from "../../model/format";
import { endOf } from "../../model/view";
import { ProblemPanel } from "../../widgets/problem";
import { Loading } from "../../widgets/shell";
import { MoreHits } from "./morehits";
import { nameOfRow, rowsToList, type Trace } from "./trace";

const LIMIT = 200;
const QUIET = 250; // ms without a movement before events are asked for
const ALL = "dur>=0ps"; // each event lasts so long

export function EventList({ trace }: { trace: Trace }) {
  const rows = rowsToList(trace);
  const row = rows.find((r) => r.line!.line === trace.lineToList());
  if (!row) return <p class="none">No row with events is in sight.</p>;
  return (
    <div class="hits-list">
      <div class="dock-line">
        <label class="choice">Row
          <select value={String(row.line!.line)} onChange={(e) => trace.listEvents(Number(e.currentTarget.value))}>
            {rows.map((r) => <option key={r.line!.line} value={String(r.line!.line)}>{nameOfRow(r)}</option>)}
          </select>
        </label>
        <span class="push"><kbd>.</kbd> and <kbd>,</kbd> walk along the row, <kbd>J</kbd> and <kbd>K</kbd> to others</span>
      </div>
      <Events key={row.line!.line} trace={trace} line={row.line!.line} name={nameOfRow(row)} />
    </div>
  );
}

function Events({ trace, line, name }: { trace: Trace; line: number; name: string }) {
  const answer = useSignal<SearchAnswer | null>(null);
  const problem = useSignal<Problem | null>(null);
  const again = useSignal(0);
  const more = useSignal<Hit | null>(null); // go on behind this one
  const v = trace.view.value;
  const [t0, t1] = [v.t0, endOf(v)];
  const loading = trace.tracks.value?.loading;

  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(() => {
      more.value = null;
      void trace.api.json<SearchAnswer>("search", { ...trace.who, q: ALL, rows: line, t0, t1, limit: LIMIT }, abort.signal).then(
        (got) => ((answer.value = got), (problem.value = null)),
        (e: unknown) => isAbort(e) || (problem.value = asProblem(e)),
      );
    }, answer.peek() ? QUIET : 0);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [t0, t1, loading, again.value]);

  useEffect(() => {
    const last = more.value;
    const have = answer.peek();
    if (!last || !have) return undefined;
    const abort = new AbortController();
    void trace.api.json<SearchAnswer>("search", { ...trace.who, q: ALL, rows: line, t0, t1, limit: LIMIT, after: big(last.begin_ps), after_id: big(last.id), dir: "next" }, abort.signal).then(
      (got) => answer.peek() === have && (answer.value = { ...have, hits: [...have.hits, ...got.hits], more: got.more }),
      (e: unknown) => isAbort(e) || (problem.value = asProblem(e)),
    );
    return () => abort.abort();
  }, [more.value]);

  const a = answer.value;
  if (problem.value) return <ProblemPanel small problem={problem.value} retry={() => again.value++} />;
  if (!a) return <Loading what="Reading the row's events…" />;
  const words = a.total === 0 ? `No event of ${name} is in view: move there, or zoom out` : `${plural(a.total, "event")} of ${name} in view`;
  return (
    <>
      <p class="none" role="status">{words}{a.loading ? "; the profile is still loading" : ""}.</p>
      <table class="grid" aria-label={`Events of ${name}`}>
        {a.total > 0 && <thead><tr><th scope="col">Name</th><th scope="col">Begin</th><th scope="col">Duration</th><th scope="col">Exactly</th><th scope="col">End</th></tr></thead>}
        <tbody>
          {a.hits.map((h) => {
            const begin = big(h.begin_ps);
            const length = big(h.duration_ps);
            const chosen = String(h.id) === trace.event.id.value;
            return (
              <tr key={String(h.id)} aria-selected={chosen}>
                <td class="name"><div><button type="button" class="link" title={h.name} aria-pressed={chosen} onClick={() => trace.chooseListed(h)}>{h.name || <i>no name</i>}</button></div></td>
                <td class="number" title={`${begin} ps`}>{timestamp(begin)}</td>
                <td class="number">{duration(length)}</td>
                <td class="number" title={`${length} ps`}>{exactNs(length)}</td>
                <td class="number" title={`${begin + length} ps`}>{timestamp(begin + length)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      <MoreHits listed={a.hits.length} total={a.total} more={a.more} ask={() => (more.value = a.hits[a.hits.length - 1] ?? null)} />
    </>
  );
}
