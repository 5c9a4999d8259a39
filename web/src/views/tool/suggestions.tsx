// The page of suggestions as a report: status, what it comes down to, key figures, findings with what
// shows them, and what changed since the report before.
import { useMemo } from "preact/hooks";
import type { Report } from "../../api/report";
import { bytes, date } from "../../model/format";
import { isKnown, knownFindings } from "../../model/known";
import { runTitle } from "../../model/runname";
import { conditionsOf, differences, findingsIn, isKey, keyFigures, sentencesOf, since, sinceWords, statusOf, STATUS_WORDS, suggestionsMarkdown, workloadOf, type Since, type Status } from "../../model/suggestions";
import { encode, rangeQuery, toolHref, type ToolUrl } from "../../model/toolurl";
import { show } from "../../model/units";
import { Icon } from "../../widgets/icon";
import { Tile, Unknown } from "../../widgets/metric";
import { useBefore, type Before } from "./before";
import { bothHref } from "./base";
import { FindingCards, momentHref, rowsHref } from "./findings";
import { metricPage } from "./special";
import type { PartProps } from "./parts";
import { set } from "./state";

const OWN = new Set(["findings", "evidence", "summary", "gate", "programs"]);

export const isOwnTable = (id: string): boolean => OWN.has(id);
export const isOwnMetric = (id: string): boolean => id === "status" || isKey(id);

let shown: { report: Report; since: Since } | null = null; // for the copy of the whole report

export function SuggestionsPart({ report, s, root }: PartProps) {
  const before = useBefore(root, s, report);
  const change = useMemo(() => (before.report ? since(report, before.report, before.run) : null), [report, before.report]);
  const list = useMemo(() => findingsIn(report), [report]);
  shown = change ? { report, since: change } : null;
  return (
    <>
      <Summary report={report} root={root} s={s} />
      <KeyFigures report={report} before={before.report} root={root} s={s} />
      <SincePart before={before} change={change} report={report} root={root} s={s} />
      {list.length === 0
        ? <div class="empty"><h2>Nothing to suggest</h2><p>No rule that could be checked applies to this run; below is what was looked at.</p></div>
        : <FindingCards list={list} s={s} root={root} changed={change?.changed} />}
    </>
  );
}

const ICON = { OPTIMAL: "check", NEEDS_ATTENTION: "warn", "": "info" } as const;
const TONE = { OPTIMAL: "good", NEEDS_ATTENTION: "bad", "": "" } as const;

function Summary({ report, root, s }: { report: Report; root: string; s: ToolUrl }) {
  const status: Status = statusOf(report) ?? { word: "", why: "this server does not judge" };
  const conditions = conditionsOf(report);
  const met = conditions.filter((c) => c.met === true).length;
  const weighty = findingsIn(report).filter((f) => f.priority !== "P2");
  const sentences = sentencesOf(report);
  const said = sentences.some((x) => x.includes(status.why.split(": ").pop()!)); // in one of them
  const known = weighty.filter((f) => isKnown(knownFindings.value, root, s.run, f.rule)).length;
  return (
    <section class={`report-status ${TONE[status.word]}`} aria-labelledby="report-status" data-status={status.word || "n/a"}>
      <h2 id="report-status"><Icon name={ICON[status.word]} /> {STATUS_WORDS[status.word]}</h2>
      <p>
        {sentences.join(" ")}
        {sentences.length === 0 && report.verdict}
        {known > 0 && ` ${known === weighty.length ? "All" : known} of what is weighty ${known === 1 && weighty.length === 1 ? "is" : "are"} marked as known.`}
      </p>
      {status.why && !said && <p class="ago">{status.word ? `Weighed, too: ${status.why}.` : `${status.why}.`}</p>}
      {conditions.length > 0 && (
        <details>
          <summary>What an optimal run has: {met} of {conditions.length} met</summary>
          <ul class="gate">
            {conditions.map((c) => (
              <li key={c.what} class={c.met === null ? "" : c.met ? "good" : "bad"}>
                <Icon name={c.met === null ? "info" : c.met ? "check" : "warn"} />
                <span>{c.what}: <b>{c.value}</b> <span class="ago">({c.limit}; {c.met === null ? "not known" : c.met ? "met" : "not met"})</span>{c.reason && <span class="ago"> {c.reason}</span>}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}

function KeyFigures({ report, before, root, s }: { report: Report; before: Report | null; root: string; s: ToolUrl }) {
  const all = keyFigures(report);
  const base = new Map(before?.metrics.map((m) => [m.id, m]));
  const unknown = all.filter((m) => m.value === null);
  const href = (id: string): { href: string; hrefTitle: string } | object => {
    const page = metricPage(id);
    return page ? { href: toolHref(root, page, s), hrefTitle: "What explains it" } : {};
  };
  return (
    <section aria-label="Key figures">
      <h2 class="unseen">Key figures</h2>
      <div class="tiles">{all.filter((m) => m.value !== null).map((m) => <Tile key={m.id} m={m} {...href(m.id)} {...(base.has(m.id) ? { base: base.get(m.id) } : {})} />)}</div>
      {unknown.length > 0 && <Unknown metrics={unknown} />}
    </section>
  );
}

function SincePart({ before, change, report, root, s }: { before: Before; change: Since | null; report: Report; root: string; s: ToolUrl }) {
  if (before.denied) return null;
  const there = before.report && differences(workloadOf(report), workloadOf(before.report));
  const when = date(before.others.find((r) => r.run === before.run)?.captured_ms ?? null);
  const part = s.range || s.steps || s.hosts.length > 0;
  const page = `${root}smart_suggestion?run=${encode(before.run)}${rangeQuery({ range: "", steps: "", marker: s.marker })}`;
  return (
    <section class="panel since-part" aria-labelledby="since">
      <div class="panel-head">
        <h2 id="since">Since the report before</h2>
        <label class="choice">Compare with
          <select value={before.run} onChange={(e) => set({ base: e.currentTarget.value })}>
            <option value="">{before.asked ? "The one before, of the same work" : before.busy ? "Looking…" : "None was found"}</option>
            {before.run && !before.others.some((r) => r.run === before.run) && <option value={before.run}>{runTitle(before.run)}</option>}
            {before.others.map((r) => <option key={r.run} value={r.run}>{runTitle(r.run)}</option>)}
          </select>
        </label>
      </div>
      {before.busy && <p class="row ago" role="status"><span class="spinner" /> {before.run ? `Reading the report of ${runTitle(before.run)}…` : "Looking for the last run of the same work…"}</p>}
      {!before.busy && before.why && <p class="ago">{before.why}{!before.asked && " Another run can be chosen."}</p>}
      {before.large && <p class="ago"><a href={toolHref(root, "smart_suggestion", { ...s, base: before.large.run })}>{runTitle(before.large.run)}</a> is earlier and has as many hosts; with {bytes(before.large.bytes)} it is not opened by itself.</p>}
      {change && (
        <>
          <p>{sinceWords(change)} <span class="ago">Against <a href={page}>{runTitle(before.run)}</a>{when.iso && <>, <span title={when.iso}>{when.text}</span></>}. <a href={bothHref(root, { ...s, base: before.run })}>Compare the runs</a></span></p>
          {part && <p class="ago">That is the whole of it, this report is about a part of the run.</p>}
          {there && there.length > 0 && <p class="ago since-warning"><Icon name="warn" /> <span>Not the same work: {there.join("; ")}.</span></p>}
          {change.gone.length > 0 && (
            <ul class="gone" aria-label="Findings that are gone">
              {change.gone.map((g) => <li key={g.rule}><span class="since">gone</span> {g.words} <span class="ago">was {show(g.was, "fraction")}</span></li>)}
            </ul>
          )}
        </>
      )}
    </section>
  );
}

/** The whole report, with links in full. */
export function reportText({ report, s, root }: PartProps): string {
  const full = (href: string): string => (href ? new URL(href, window.location.href).href : "");
  return suggestionsMarkdown(report, `Suggestions for ${runTitle(s.run)}`, shown?.report === report ? shown.since : null,
    (e) => (e ? full(momentHref(root, s, e) || rowsHref(root, s, e)) : ""), window.location.href);
}
