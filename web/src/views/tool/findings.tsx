// What to change, the weightiest first: what was seen, what shows it, what it would bring, what helps.
import { useEffect, useMemo, useRef } from "preact/hooks";
import { Api } from "../../api/client";
import type { Report, Table } from "../../api/report";
import { plural } from "../../model/format";
import { show } from "../../model/units";
import { markKnown, isKnown, knownFindings } from "../../model/known";
import { findingsIn, impactWords, shareOf, type Change, type Evidence, type Finding } from "../../model/suggestions";
import { elsewhere, rangeArguments, timelineHref, toolHref, type ToolUrl } from "../../model/toolurl";
import { findingId } from "../../model/tips";
import { toolOf } from "../../model/tools";
import { Copy } from "../../widgets/copy";
import { Icon } from "../../widgets/icon";
import { useReport } from "./load";
import type { PartProps } from "./parts";

export const findingsOf = (r: Report): Table | undefined => r.tables.find((t) => t.id === "findings");

const FEW = 3;

/** The weightiest on the overview. They come apart from the page, and their absence takes nothing from it. */
export function TopFindings({ s, root }: PartProps) {
  const api = useMemo(() => new Api(root), [root]);
  const { report } = useReport(api, { run: s.run, tool: "smart_suggestion", host: s.hosts, ...rangeArguments(s) });
  const r = report.value;
  const list = useMemo(() => (r ? findingsIn(r) : []), [r]);
  if (list.length === 0) return null;
  return (
    <>
      <FindingCards list={list.slice(0, FEW)} s={s} root={root} />
      {list.length > FEW && <p class="none"><a href={`${root}smart_suggestion${elsewhere(s)}`}>{plural(list.length - FEW, "more suggestion")}</a></p>}
    </>
  );
}

/** Those that somebody knows of stand last. */
export function FindingCards({ list, s, root, changed }: { list: readonly Finding[]; s: ToolUrl; root: string; changed?: ReadonlyMap<string, Change> | undefined }) {
  const known = knownFindings.value;
  const old = (f: Finding): boolean => isKnown(known, root, s.run, f.rule);
  const box = useRef<HTMLElement>(null);
  useEffect(() => { // a link may name one of them, which was not there when it was followed
    const named = [...(box.current?.querySelectorAll<HTMLElement>("article") ?? [])].find((a) => `#${encodeURIComponent(a.id)}` === window.location.hash);
    named?.focus();
  }, []);
  return (
    <section class="findings" aria-label="Findings" ref={box}>
      <h2 class="unseen">Findings</h2>
      {[...list].sort((a, b) => Number(old(a)) - Number(old(b))).map((f) => <Card key={f.rule} f={f} s={s} root={root} old={old(f)} change={changed?.get(f.rule)} />)}
    </section>
  );
}

/** The timeline at the moment, all of it in sight. */
export function momentHref(root: string, s: ToolUrl, x: Finding | Evidence): string {
  if (!x.time) return "";
  const id = x.op ? { op: x.op, program: x.program } : {};
  return timelineHref(root, s, { ...id, begin: x.time.begin, duration: x.time.duration, window: !x.op, ...(x.time.host ? { host: x.time.host } : {}) });
}

/** The rows that tell more: of an op its own. */
export function rowsHref(root: string, s: ToolUrl, e: Evidence): string {
  const page = toolOf(e.tool);
  if (!page || (page.id === "trace" && e.time)) return "";
  return toolHref(root, page.id, e.op ? { ...s, op: e.op, program: e.program } : s);
}

function EvidenceLine({ e, s, root }: { e: Evidence; s: ToolUrl; root: string }) {
  const rows = rowsHref(root, s, e);
  const moment = momentHref(root, s, e);
  const where = e.time ? [e.time.duration ? show(e.time.duration, "ps") : "", e.time.host && `on ${e.time.host}`].filter(Boolean).join(" ") : "";
  return (
    <li>
      {e.op ? <code>{rows ? <a href={rows} title={`${e.op}: its row in ${toolOf(e.tool)!.label}`}>{e.words}</a> : e.words}</code> : rows ? <a href={rows} title={`Look at it: ${toolOf(e.tool)!.label}`}>{e.words}</a> : <span>{e.words}</span>}
      {!Number.isNaN(e.share) && <b>{show(e.share, "fraction")}</b>}
      {moment && <a class="evidence-time" href={moment} title="The timeline there" aria-label={`${e.words} in the timeline${where && `, ${where}`}`}><Icon name="timeline" /> {where || "timeline"}</a>}
    </li>
  );
}

function Card({ f, s, root, old, change }: { f: Finding; s: ToolUrl; root: string; old: boolean; change: Change | undefined }) {
  const page = toolOf(f.tool);
  const moment = momentHref(root, s, f);
  const rows = page && (page.id !== "trace" || !moment) ? toolHref(root, page.id, f.op ? { ...s, op: f.op, program: f.program } : s) : "";
  const has = !Number.isNaN(f.share);
  const text = (): string => [
    `${f.priority} ${f.words}${has ? ` (${show(f.share, "fraction")} ${shareOf(f.rule)})` : ""}`, ...f.evidence.map((e) => `- ${e.words}${Number.isNaN(e.share) ? "" : `: ${show(e.share, "fraction")}`}`),
    `Impact: ${impactWords(f)}`, `Fix: ${f.fix}`, window.location.href,
  ].join("\n");
  return (
    <article id={findingId(f.rule)} tabIndex={-1} class={`finding ${f.priority.toLowerCase()} ${old ? "known" : ""}`}>
      <header>
        <span class="priority">{f.priority}</span>
        <h3>{f.words}</h3>
        {change && <span class={`since ${change.words === "new" ? "new" : ""}`} title="Against the report before">{change.words}</span>}
        {has && <b class="finding-share" title={`Measured share ${shareOf(f.rule)}`}>{show(f.share, "fraction")}</b>}
        <Copy title="Copy as text" text={text} />
      </header>
      {has && <span class="meter" aria-hidden="true"><span style={{ width: `${Math.min(100, f.share * 100)}%` }} /></span>}
      <dl>
        {f.evidence.length > 0
          ? <div><dt>Evidence</dt><dd><ul>{f.evidence.map((e, i) => <EvidenceLine key={i} e={e} s={s} root={root} />)}</ul></dd></div>
          : f.said && <div><dt>Evidence</dt><dd>{f.said}</dd></div>}
        <div><dt>Expected impact</dt><dd>{impactWords(f)}</dd></div>
        <div><dt>What helps</dt><dd>{f.fix}</dd></div>
      </dl>
      <p class="row">
        {rows && <a class="button" href={rows}><Icon name={page!.icon} /> Look at it: {page!.label}</a>}
        {moment && <a class="button" href={moment} title="The timeline where it is seen best"><Icon name="timeline" /> See it happen{f.time!.duration ? `: ${show(f.time!.duration, "ps")}` : ""}{f.time!.host && ` on ${f.time!.host}`}</a>}
        <button type="button" class="link" aria-pressed={old} title="Kept in this browser; it stands last from then on" onClick={() => markKnown(root, s.run, f.rule, !old)}>{old ? "Known: forget that" : "Mark as known"}</button>
      </p>
    </article>
  );
}
