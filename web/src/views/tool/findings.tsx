// What to change, the weightiest first: what was seen, its share, and a way to look at it.
import { useEffect, useMemo, useRef } from "preact/hooks";
import { Api } from "../../api/client";
import type { Cell, Report, Table } from "../../api/report";
import { plural } from "../../model/format";
import { asNumber, show } from "../../model/units";
import { markKnown, isKnown, knownFindings } from "../../model/known";
import { opColumns, timeOf } from "../../model/ops";
import { elsewhere, rangeArguments, timelineHref, toolHref } from "../../model/toolurl";
import { findingId } from "../../model/tips";
import { toolOf } from "../../model/tools";
import { Copy } from "../../widgets/copy";
import { Icon } from "../../widgets/icon";
import { useReport } from "./load";
import type { PartProps } from "./parts";

export const findingsOf = (r: Report): Table | undefined => r.tables.find((t) => t.id === "findings");

const text = (v: Cell | undefined): string => (v === null || v === undefined ? "" : String(v));

const FEW = 3;

/** The weightiest on the overview. They come apart from the page, and their absence takes nothing from it. */
export function TopFindings({ s, root }: PartProps) {
  const api = useMemo(() => new Api(root), [root]);
  const { report } = useReport(api, { run: s.run, tool: "smart_suggestion", host: s.hosts, ...rangeArguments(s) });
  const t = report.value && findingsOf(report.value);
  if (!t || t.rows.length === 0) return null;
  return (
    <>
      <FindingsPart report={{ ...report.value!, tables: [{ ...t, rows: t.rows.slice(0, FEW) }] }} s={s} root={root} />
      {t.total_rows > FEW && <p class="none"><a href={`${root}smart_suggestion${elsewhere(s)}`}>{plural(t.total_rows - FEW, "more suggestion")}</a></p>}
    </>
  );
}

export function FindingsPart({ report, s, root }: PartProps) {
  const t = findingsOf(report);
  const box = useRef<HTMLElement>(null);
  useEffect(() => { // a link may name one of them, which was not there when it was followed
    const named = [...(box.current?.querySelectorAll<HTMLElement>("article") ?? [])].find((a) => `#${encodeURIComponent(a.id)}` === window.location.hash);
    named?.focus();
  }, [t]);
  if (!t) return null;
  const at = (id: string): number => t.columns.findIndex((c) => c.id === id);
  const get = (row: readonly Cell[], id: string): string => (at(id) < 0 ? "" : text(row[at(id)]));
  const columns = opColumns(t);
  const known = knownFindings.value;
  const rows = [...t.rows].sort((a, b) => Number(isKnown(known, root, s.run, get(a, "rule"))) - Number(isKnown(known, root, s.run, get(b, "rule"))));
  if (t.rows.length === 0) return <div class="empty"><h2>Nothing to suggest</h2><p>No rule that could be checked applies to this run; below is what was looked at.</p></div>;
  return (
    <section class="findings" aria-label={t.title} ref={box}>
      <h2 class="unseen">{t.title}</h2>
      {rows.map((row) => {
        const share = at("share") < 0 ? null : row[at("share")];
        const op = get(row, "op");
        const page = toolOf(get(row, "tool"));
        const rule = get(row, "rule");
        const old = isKnown(known, root, s.run, rule);
        const time = timeOf(row, columns, "ps");
        const there = time && timelineHref(root, s, { ...(op ? { op, program: get(row, "program_id") } : {}), begin: time.begin, duration: time.duration, window: !op, ...(time.host ? { host: time.host } : {}) });
        const seen = op ? { op, program: get(row, "program_id") } : {};
        return (
          <article key={rule} id={findingId(rule)} tabIndex={-1} class={`finding ${get(row, "priority").toLowerCase()} ${old ? "known" : ""}`}>
            <header>
              <span class="priority">{get(row, "priority")}</span>
              <h3>{get(row, "finding")}</h3>
              {share !== null && share !== undefined && <b class="finding-share" title="Measured share of the time">{show(share, "fraction")}</b>}
              <Copy title="Copy as text" text={() => `${get(row, "priority")} ${get(row, "finding")} (${show(share, "fraction")})\n${get(row, "evidence")}\n${get(row, "fix")}\n${window.location.href}`} />
            </header>
            {share !== null && share !== undefined && <span class="meter" aria-hidden="true"><span style={{ width: `${Math.min(100, asNumber(share) * 100)}%` }} /></span>}
            {get(row, "evidence") && <p class="ago">{get(row, "evidence")}</p>}
            <p>{get(row, "fix")}</p>
            <p class="row">
              {page && page.id !== "trace" && <a class="button" href={`${root}${page.id}${elsewhere(s, seen)}`}><Icon name={page.icon} /> Look at it: {page.label}</a>}
              {there && <a class="button" href={there} title="The timeline where it is seen best"><Icon name="timeline" /> See it happen: {show(time.duration ?? 0, "ps")} on {time.host}</a>}
              {page && page.id === "trace" && !there && <a class="button" href={toolHref(root, page.id, s)}><Icon name={page.icon} /> Look at it: {page.label}</a>}
              <button type="button" class="link" aria-pressed={old} title="Kept in this browser; it stands last from then on" onClick={() => markKnown(root, s.run, rule, !old)}>{old ? "Known: forget that" : "Mark as known"}</button>
            </p>
          </article>
        );
      })}
    </section>
  );
}
