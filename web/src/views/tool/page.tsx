// A tool's page: the report of the tool in the address, part by part. What a tool shows beside that,
// or instead, stands in special.tsx.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { Api } from "../../api/client";
import type { Column, Metric, Report } from "../../api/report";
import type { Progress, Run } from "../../api/types";
import { BASE_COLUMNS, type Base } from "../../model/base";
import { here } from "../../model/location";
import { runTitle } from "../../model/runname";
import { serverFilter } from "../../model/serverfilter";
import { elsewhere, parseTool, rangeArguments, toolArguments, toolHref, type ToolUrl } from "../../model/toolurl";
import { TIMELINE, tools, toolOf, type Tool } from "../../model/tools";
import { markdownText } from "../../model/tablemodel";
import { show } from "../../model/units";
import { whyHref } from "../../model/why";
import { dialog } from "../../shell/dialogs";
import { progressText } from "../../shell/jobs";
import { toolsOf } from "../../shell/runtools";
import { Copy } from "../../widgets/copy";
import { Coverage } from "../../widgets/coverage";
import { HostPicker } from "../../widgets/hosts";
import { Icon } from "../../widgets/icon";
import { isSecond, Tile, Unknown } from "../../widgets/metric";
import { ProblemPanel } from "../../widgets/problem";
import { RangeChip } from "../../widgets/rangechip";
import { Bar, Loading } from "../../widgets/shell";
import { TextPane } from "../../widgets/textpane";
import { BaseChip, useBase, type Held } from "./base";
import { useReport } from "./load";
import { OpStrip } from "./opstrip";
import { Missing, Notes, SeriesPart, TablePart, TreePart, type PartProps } from "./parts";
import { metricPage, specials } from "./special";
import { set } from "./state";
import { StepMarker } from "./stepmarker";

const ROWS = 2000;
const ALL_ROWS = 100_000;

export function ToolPage() {
  const { root, page, search } = here.value;
  const s = parseTool(search);
  const tool = toolOf(page)!;
  const api = useMemo(() => new Api(root), [root]);
  const info = useSignal<Run | null>(null);
  const limit = useSignal(ROWS);
  const truncated = useSignal<readonly Column[] | null>(null); // of a table that is not here whole

  useEffect(() => {
    document.title = `${tool.label} · ${runTitle(s.run)} · xprofd`;
    limit.value = ROWS;
  }, [tool, s.run]);
  useEffect(() => {
    const abort = new AbortController();
    info.value = null;
    api.json<Run>("run", { run: s.run }, abort.signal).then((got) => (info.value = got), () => undefined); // the report says why
    return () => abort.abort();
  }, [api, s.run]);

  // Rows that were kept back are ordered and chosen by the server, not among those that are here.
  const word = truncated.value ? serverFilter(s.q, truncated.value) : "";
  const { report, problem, busy, progress, fresh, retry } = useReport(api, {
    run: s.run, tool: tool.id, host: s.hosts, limit: limit.value, ...rangeArguments(s), ...toolArguments(s), ...specials[tool.id]?.args?.(s),
    ...(truncated.value && s.sort && !BASE_COLUMNS.has(s.sort.replace("-", "")) ? { sort: s.sort } : {}), ...(word ? { filter: word } : {}),
  });
  const r = report.value?.tool === tool.id ? report.value : null;
  useEffect(() => {
    if (r && r.tables[0] && r.tables[0].total_rows > r.tables[0].rows.length) truncated.value = r.tables[0].columns;
  }, [r]);

  const held = useBase(api, s, tool, fresh ? r : null, specials[tool.id]?.args?.(s));

  return (
    <>
      <Bar crumbs={<Crumbs s={s} root={root} tool={tool} info={info.value} held={held} whole={r !== null && !busy.value && !r.range} range={r?.range ?? null} unmarked={r !== null && r.notes.some((n) => UNMARKED.has(n.code))} />}>
        {busy.value && r && <span class="row ago" role="status"><span class="spinner" /> Updating</span>}
        {r && <Copy label="Markdown" title={specials[tool.id]?.markdown ? "Copy the whole report as Markdown, with its links" : "Copy the figures as Markdown, with the link"} text={() => specials[tool.id]?.markdown?.({ report: r, s, root }) ?? reportMarkdown(r, s, held.base)} />}
        <Copy label="Link" title="Copy the link to this view" text={() => window.location.href} />
        <button type="button" class="tool" title="Keys and filters (?)" aria-label="Help" onClick={() => (dialog.value = "help")}><Icon name="help" /></button>
      </Bar>
      <main class="page broad tool-page" aria-busy={busy.value}>
        <OpStrip api={api} s={s} root={root} report={r} page={tool.id} hosts={info.value?.hosts.map((h) => h.host) ?? []} />
        {problem.value
          ? <Failed s={s} root={root} tool={tool} problem={<ProblemPanel problem={problem.value} retry={retry} />} status={problem.value.status} />
          : r
            ? <ReportView report={r} s={s} root={root} tool={tool} base={held.base} size={ofHosts(info.value, r.hosts)} decoder={info.value?.decoder ?? ""} all={limit.value < ALL_ROWS ? () => (limit.value = ALL_ROWS) : undefined} />
            : <Waiting tool={tool} progress={progress.value} />}
      </main>
    </>
  );
}

/** Notes that say that what a step is was guessed, or could not be. */
const UNMARKED = new Set(["steps_inferred", "no_steps"]);

function Crumbs({ s, root, tool, info, held, whole, range, unmarked }: {
  s: ToolUrl; root: string; tool: Tool; info: Run | null; held: Held; whole: boolean; range: Report["range"] | null; unmarked: boolean;
}) {
  const hosts = info?.hosts.map((h) => h.host) ?? [];
  return (
    <>
      <a href={root}>Runs</a> <Icon name="right" />
      <a href={`${root}run?run=${encodeURIComponent(s.run)}`} title={runTitle(s.run)}>{runTitle(s.run)}</a> <Icon name="right" />
      <b>{tool.label}</b>
      <HostPicker all={hosts} chosen={s.hosts} onChange={(h) => set({ hosts: h })} />
      {(s.marker || unmarked) && <StepMarker s={s} root={root} />}
      <BaseChip s={s} root={root} held={held} />
      <RangeChip
        s={s} whole={whole} href={range && range.t0 !== undefined ? toolHref(root, TIMELINE, { ...s, t: `${range.t0}..${range.t1}` }) : ""}
        clear={() => set({ range: "", steps: "" })}
      />
    </>
  );
}

function Head({ title, question }: { title: string; question: string }) {
  return (
    <header class="tool-head">
      <h1>{title}</h1>
      <p>{question}</p>
    </header>
  );
}

function Waiting({ tool, progress: p }: { tool: Tool; progress: Progress | null }) {
  return (
    <>
      <Head title={tool.label} question={tool.question} />
      <Loading what={p && p.bytes_done < p.bytes_total ? `Reading the profile: ${progressText(p)}` : "Working it out…"} />
      {p && p.bytes_total > 0 && <progress max={p.bytes_total} value={p.bytes_done} aria-label="Profile read" />}
      <div class="skeleton" aria-hidden="true"><i /><i /><i /><i /></div>
    </>
  );
}

/** What is missing for this page, and which pages of the run have something to say. */
function Failed({ s, root, tool, problem, status }: { s: ToolUrl; root: string; tool: Tool; problem: preact.ComponentChildren; status: number }) {
  const states = toolsOf(root, s.run).value;
  const mine = states?.get(tool.id);
  const none = mine && !mine.available;
  return (
    <>
      <Head title={tool.label} question={tool.question} />
      {none
        ? (
          <div class="empty">
            <h2>This run has no data for it</h2>
            <p>{mine.reason}</p>
          </div>
        )
        : problem}
      {(none || status === 404) && states && (
        <p class="none">
          Pages of this run with data:{" "}
          {tools.filter((t) => t.id === "trace" || states.get(t.id)?.available).map((t, i) => <>{i > 0 && ", "}<a key={t.id} href={`${root}${t.id}${elsewhere(s)}`}>{t.label}</a></>)}.
        </p>
      )}
    </>
  );
}

/** Bytes of the files that a report is from; 0: not known. */
function ofHosts(run: Run | null, hosts: readonly string[]): number {
  const seen = new Set(hosts);
  return run?.hosts.reduce((a, h) => a + (seen.has(h.host) ? h.bytes : 0), 0) ?? 0;
}

function LinkedTile({ m, report, s, root, here: at, small, held }: { m: Metric; report: Report; s: ToolUrl; root: string; here: string; small?: boolean; held: Base | null | undefined }) {
  const why = whyHref(report, m.id, s, root);
  const page = metricPage(m.id);
  const elsewhere = page !== "" && page !== at && page !== TIMELINE;
  const was = held?.report?.metrics.find((x) => x.id === m.id);
  const base = was && was.value !== null ? { base: was } : {};
  const window = why ? { href: why.href, title: `See why: the timeline at ${why.what}` } : undefined;
  if (!elsewhere) return <Tile m={m} small={small ?? false} {...base} {...(window ? { href: window.href, hrefTitle: window.title } : page === TIMELINE ? { href: toolHref(root, page, s), hrefTitle: "See why: Timeline" } : {})} />;
  return <Tile m={m} small={small ?? false} href={toolHref(root, page, s)} hrefTitle={`See why: ${toolOf(page)?.label ?? page}`} window={window} {...base} />;
}

const FIGURES = new Set(["overview_page", "input_pipeline_analyzer", "memory_profile", "memory_viewer", "inference_profile"]);

/** These are said in the line above the tiles. */
const SAID = new Set(["hosts", "cores", "device_type"]);

function ReportView({ report: r, s, root, tool, base, size, decoder, all }: { report: Report; s: ToolUrl; root: string; tool: Tool; base: Base | null; size: number; decoder: string; all: (() => void) | undefined }) {
  const special = specials[tool.id];
  const p: PartProps = { report: r, s, root, base };
  const metrics = r.metrics.filter((m) => !SAID.has(m.id) && !special?.elsewhere?.(m.id));
  const known = metrics.filter((m) => m.value !== null);
  const unknown = metrics.filter((m) => m.value === null);
  // Where figures are what one comes for they are large; elsewhere they leave the room to the rest.
  const large = FIGURES.has(tool.id) ? known.filter((m) => !isSecond(m)) : [];
  const small = known.filter((m) => !large.includes(m));
  const tables = special?.tables ? special.tables(r, s) : r.tables;
  const series = special?.series ? special.series(r) : r.series;
  const nothing = metrics.length === 0 && tables.length === 0 && series.length === 0 && !r.tree && !r.text;
  const figures = large.length > 0 && (
    <section aria-label="Figures">
      <h2 class="unseen">Figures</h2>
      <div class="tiles">{large.map((m) => <LinkedTile key={m.id} m={m} report={r} s={s} root={root} here={tool.id} held={base} />)}</div>
    </section>
  );
  const more = (small.length > 0 || unknown.length > 0) && (
    <section aria-label="More figures">
      <h2 class="unseen">More figures</h2>
      {small.length > 0 && <div class="tiles small">{small.map((m) => <LinkedTile key={m.id} m={m} report={r} s={s} root={root} here={tool.id} small held={base} />)}</div>}
      {unknown.length > 0 && <Unknown metrics={unknown} />}
    </section>
  );
  // Where figures are what one comes for, the chart comes before the lesser ones.
  const moreLast = special?.figuresLast || (FIGURES.has(tool.id) && series.length > 0);
  const treeTitle = special?.treeTitle?.(s) ?? r.tree?.title ?? "Tree";
  return (
    <>
      <div class="head-row">
        <Head title={tool.label} question={r.question || tool.question} />
        {special?.controls?.(p)}
      </div>
      {r.verdict && !special?.ownVerdict && <p class="verdict"><Icon name="gauge" /> <span>{r.verdict}</span> <Copy text={() => r.verdict!} title="Copy the sentence" /></p>}
      <Coverage r={r} root={root} run={s.run} hosts={s.hosts} size={size} decoder={decoder} />
      <Missing report={r} />
      <Notes notes={r.notes} />
      {nothing && <div class="empty"><h2>Nothing to show</h2><p>The profile was read, and holds nothing that this page is about.</p></div>}
      {!special?.figuresLast && figures}
      {!moreLast && more}
      {special?.top?.(p)}
      {series.length > 0 && <div class={series.length > 1 && series.every((x) => x.kind !== "heat") ? "charts two" : "charts"}>{series.map((x) => <SeriesPart key={x.id} series={x} pick={special?.pick?.(x, s)} span={special?.span?.(x, p)} {...p} />)}</div>}
      {special?.afterSeries?.(p)}
      {moreLast && !special?.figuresLast && more}
      {r.tree && <TreePart tree={r.tree} title={treeTitle} {...p} />}
      {tables.map((t) => <TablePart key={t.id} t={t} first={t === r.tables[0]} all={all} {...p} />)}
      {r.text && <TextPane text={r.text} title={special?.textTitle ?? "Text"} mark={s.op} />}
      {special?.figuresLast && <>{figures}{more}</>}
    </>
  );
}

export function reportMarkdown(r: Report, s: ToolUrl, base: Base | null = null): string {
  const lines = [`### ${markdownText(r.title)}: ${markdownText(s.run)}${base ? `, against ${markdownText(base.run)}` : ""}`, ""];
  const was = (m: Metric): string => {
    const then = base?.report?.metrics.find((x) => x.id === m.id);
    return then && then.value !== null && m.value !== null ? `, was ${markdownText(show(then.value, then.unit))}` : "";
  };
  if (r.verdict) lines.push(markdownText(r.verdict), "");
  for (const m of r.metrics)
    lines.push(`- ${markdownText(m.label)}: ${m.value === null ? `n/a (${markdownText(m.reason ?? "not in the profile")})` : `**${markdownText(show(m.value, m.unit))}**${was(m)}`}${m.note ? ` (${markdownText(m.note)})` : ""}`);
  for (const n of r.notes.filter((x) => x.severity !== "info")) lines.push(`- ${n.severity}: ${markdownText(n.text)}`);
  lines.push("", window.location.href, "");
  return lines.join("\n");
}
