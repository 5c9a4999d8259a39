// The search's hits.
import { big } from "../../api/json";
import { duration, exactNs, plural, timestamp } from "../../model/format";
import { ProblemPanel } from "../../widgets/problem";
import { Loading } from "../../widgets/shell";
import { MoreHits } from "./morehits";
import type { Trace } from "./trace";

export function Hits({ trace }: { trace: Trace }) {
  const { text, answer, busy, problem } = trace.search;
  const a = answer.value;
  if (problem.value) return <ProblemPanel small problem={problem.value} retry={() => trace.search.again()} />;
  if (!text.value.trim())
    return (
      <p class="none">
        Press <kbd>/</kbd> and type part of a name. <code>-word</code> excludes; <code>"two words"</code>,{" "}
        <code>line:Steps</code>, <code>plane:TPU</code> and <code>dur&gt;10us</code> narrow it down.
      </p>
    );
  if (!a) return busy.value ? <Loading what="Searching the whole profile…" /> : null;
  if (a.total === 0) return <p class="none">Nothing in the whole profile matches <b>{a.q}</b>.</p>;
  const rows = trace.rows.value.byLine;
  return (
    <div class="hits-list">
      <div class="dock-line">
        <b>{plural(a.total, "hit")}</b>
        <span>on {plural(a.lines.length, "line")}</span>
        {a.loading && <span class="warn-text">the profile is still loading</span>}
        <span class="push"><kbd>]</kbd> next, <kbd>[</kbd> previous</span>
      </div>
      <table class="grid">
        <thead><tr><th scope="col">Name</th><th scope="col">Begin</th><th scope="col">Duration</th><th scope="col" class="where">Line</th></tr></thead>
        <tbody>
          {a.hits.map((h) => {
            const row = rows.get(h.line);
            return (
              <tr key={String(h.id)} aria-selected={String(h.id) === trace.event.id.value}>
                <td class="name"><div><button type="button" class="link" title={h.name} onClick={() => trace.chooseHit(h)}>{h.name || <i>no name</i>}</button></div></td>
                <td class="number">{timestamp(big(h.begin_ps))}</td>
                <td class="number" title={exactNs(big(h.duration_ps))}>{duration(big(h.duration_ps))}</td>
                <td class="where">{row ? `${row.plane.name} › ${row.line!.name}` : `line ${h.line}`}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      <MoreHits listed={a.hits.length} total={a.total} more={a.more} ask={() => void trace.moreHits()} />
    </div>
  );
}
