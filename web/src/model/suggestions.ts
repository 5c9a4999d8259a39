// The report of suggestions as a page and as text: status, sentences, findings with what shows each, and
// what changed since the report of an earlier run of the same work.
import type { Cell, Metric, Report, Table } from "../api/report";
import type { RunRow } from "../api/types";
import { findingPairs, metricOf, moduleBase } from "./compare";
import { plural } from "./format";
import { workload } from "./known";
import { opColumns, timeOf, type RowTime } from "./ops";
import { markdownText } from "./tablemodel";
import { asNumber, show, signed } from "./units";

const text = (v: Cell | undefined): string => (v === null || v === undefined ? "" : String(v));
const table = (r: Report, id: string): Table | undefined => r.tables.find((t) => t.id === id);
const at = (t: Table, id: string): number => t.columns.findIndex((c) => c.id === id);
const cell = (t: Table, row: readonly Cell[], id: string): Cell => (at(t, id) < 0 ? null : row[at(t, id)] ?? null);

export type Word = "OPTIMAL" | "NEEDS_ATTENTION" | "";

export interface Status {
  word: Word; // "": not known
  why: string; // why that; "": the findings say it
}

export function statusOf(r: Report): Status | null {
  const m = r.metrics.find((x) => x.id === "status");
  if (!m) return null;
  const word = m.value === "OPTIMAL" || m.value === "NEEDS_ATTENTION" ? m.value : "";
  return { word, why: (word ? m.note : m.reason) ?? "" };
}

export const sentencesOf = (r: Report): string[] => table(r, "summary")?.rows.map((row) => text(row[0])) ?? [];

export interface Condition {
  what: string;
  value: string;
  limit: string;
  met: boolean | null; // null: not known
  reason: string;
}

export function conditionsOf(r: Report): Condition[] {
  const t = table(r, "gate");
  return (t?.rows ?? []).map((row) => {
    const unit = cell(t!, row, "id") === "findings" ? "count" : "fraction";
    const met = cell(t!, row, "met");
    return {
      what: text(cell(t!, row, "condition")), value: show(cell(t!, row, "value"), unit), met: typeof met === "boolean" ? met : null, reason: text(cell(t!, row, "reason")),
      limit: `${cell(t!, row, "at_least") === true ? "at least" : "at most"} ${show(cell(t!, row, "limit"), unit)}`,
    };
  });
}

/** Figures that a report is about, in this order. */
const KEY = ["step_time_mean", "idle_fraction", "input_fraction", "collective_fraction", "mxu_utilization", "hbm_utilization", "peak_memory"];

export const isKey = (id: string): boolean => KEY.includes(id);

export const keyFigures = (r: Report): Metric[] => KEY.flatMap((id) => r.metrics.filter((m) => m.id === id));

/* --- findings --- */

export interface Evidence {
  words: string;
  share: number; // NaN: it has none
  tool: string;
  op: string;
  program: string;
  time: RowTime | null;
}

export interface Finding {
  rule: string;
  priority: string;
  share: number;
  words: string;
  said: string; // evidence in words
  fix: string;
  tool: string;
  op: string;
  program: string;
  impact: Cell; // ps of a step
  time: RowTime | null;
  evidence: Evidence[];
}

/** The weightiest first. */
export function findingsIn(r: Report): Finding[] {
  const t = table(r, "findings");
  if (!t) return [];
  const c = opColumns(t);
  const e = table(r, "evidence");
  const ec = e && opColumns(e);
  const evidence = (rule: string): Evidence[] => (e?.rows ?? []).filter((row) => cell(e!, row, "rule") === rule).map((row) => ({
    words: text(cell(e!, row, "evidence")), share: asNumber(cell(e!, row, "share")), tool: text(cell(e!, row, "tool")),
    op: text(cell(e!, row, "op")), program: text(cell(e!, row, "program_id")), time: timeOf(row, ec!, "ps"),
  }));
  const list = t.rows.map((row): Finding => {
    const get = (id: string): string => text(cell(t, row, id));
    return {
      rule: get("rule"), priority: get("priority"), share: asNumber(cell(t, row, "share")), words: get("finding"), said: get("evidence"), fix: get("fix"), tool: get("tool"),
      op: get("op"), program: get("program_id"), impact: cell(t, row, "impact"), time: timeOf(row, c, "ps"), evidence: evidence(get("rule")),
    };
  });
  return list.sort((x, y) => (x.priority === y.priority ? (y.share || 0) - (x.share || 0) : x.priority < y.priority ? -1 : 1));
}

const NO_TIME = new Set(["memory_near_limit", "hbm_bound", "compute_bound"]);
const OF: Record<string, string> = { memory_near_limit: "of the capacity", hbm_bound: "of the peak", compute_bound: "of the peak", low_utilization: "of what could be done" };

export const shareOf = (rule: string): string => OF[rule] ?? "of the time";

/** What could be won. */
export function impactWords(f: Finding): string {
  if (f.impact !== null) return `At most ${show(f.impact, "ps")} of each step.`;
  if (NO_TIME.has(f.rule)) return f.rule === "memory_near_limit" ? "No time by itself: it bounds what fits." : "None: it is what the hardware can do.";
  if (f.rule === "unattributed" || f.rule === "sparse_core") return "Not known: it is work, not time lost.";
  return Number.isNaN(f.share) ? "Not known." : `At most ${show(f.share, "fraction")} ${shareOf(f.rule)}; in time it is not known, as there are no steps.`;
}

/* --- the report before --- */

export interface Workload {
  programs: string[];
  device: string;
  hosts: number;
}

export function workloadOf(r: Report): Workload {
  return {
    programs: (table(r, "programs")?.rows ?? []).map((row) => text(row[0])).sort(),
    device: text(r.metrics.find((m) => m.id === "device_type")?.value), hosts: metricOf(r, "hosts"),
  };
}

/** In what two differ; none: the same work, as far as profiles tell. */
export function differences(a: Workload, b: Workload): string[] {
  const out: string[] = [];
  if (a.device !== b.device) out.push(`device ${b.device || "unknown"} there, ${a.device || "unknown"} here`);
  if (a.hosts !== b.hosts) out.push(`${plural(b.hosts, "host")} there, ${a.hosts} here`);
  const only = (x: string[], y: string[]): string[] => x.filter((p) => !y.includes(p));
  const [here, there] = [only(a.programs, b.programs), only(b.programs, a.programs)];
  if (here.length || there.length) out.push(`other programs${there.length ? `, only there: ${there.slice(0, 4).join(", ")}` : ""}${here.length ? `, only here: ${here.slice(0, 4).join(", ")}` : ""}`);
  return out;
}

/** Whether it can be told that two are the same work: without a program everything would be. */
export const isSame = (a: Workload, b: Workload, nameA: string, nameB: string): boolean =>
  differences(a, b).length === 0 && (a.programs.length > 0 || workload(nameA) === workload(nameB));

/** What the list of runs knows of one: that it did the same (true), something else (false), or nothing (null). */
function didSame(r: RunRow, mine: Workload): boolean | null {
  const f = r.facts;
  if (!f || !f.workload || mine.programs.length === 0) return null;
  return mine.programs.includes(moduleBase(f.workload)) && (!f.device_type || f.device_type === mine.device);
}

/** Earlier runs of as many hosts that may have done the same: those that are called alike first, then those known to have done it, each the newest first. */
export function candidates(runs: readonly RunRow[], run: string, captured: number | null, mine: Workload): RunRow[] {
  if (captured === null) return [];
  const kind = workload(run);
  const rank = (r: RunRow): number => (workload(r.run) === kind ? 2 : didSame(r, mine) ? 1 : 0);
  return runs
    .filter((r) => r.run !== run && r.state === "ready" && r.hosts === mine.hosts && r.captured_ms !== null && r.captured_ms < captured && didSame(r, mine) !== false)
    .sort((a, b) => rank(b) - rank(a) || b.captured_ms! - a.captured_ms!);
}

export interface Change {
  was: number; // share; NaN: new
  words: string;
}

export interface Since {
  run: string;
  fresh: string[]; // rules
  gone: { rule: string; words: string; was: number }[];
  changed: Map<string, Change>; // of all that are found now
  step: { now: number; was: number } | null; // ps
}

/** Less of a share than this is the same. */
const STILL = 0.005;

export function since(now: Report, before: Report, run: string): Since {
  const pairs = findingPairs(before, now);
  const changed = new Map<string, Change>();
  for (const p of pairs) {
    if (Number.isNaN(p.b)) continue;
    const d = p.b - p.a;
    changed.set(p.rule, { was: p.a, words: Number.isNaN(p.a) ? "new" : Math.abs(d) < STILL ? "as before" : `was ${show(p.a, "fraction")}` });
  }
  const [a, b] = [metricOf(now, "step_time_mean"), metricOf(before, "step_time_mean")];
  return {
    run, changed, fresh: pairs.filter((p) => Number.isNaN(p.a)).map((p) => p.rule),
    gone: pairs.filter((p) => Number.isNaN(p.b)).map((p) => ({ rule: p.rule, words: p.text, was: p.a })),
    step: a > 0 && b > 0 ? { now: a, was: b } : null,
  };
}

export function sinceWords(s: Since): string {
  const moved = [...s.changed.values()].filter((c) => c.words.startsWith("was")).length;
  const same = s.changed.size - moved - s.fresh.length;
  const parts = [s.fresh.length && `${s.fresh.length} new`, s.gone.length && `${s.gone.length} gone`, moved && `${moved} changed`, same && `${same} as before`].filter(Boolean);
  const ratio = s.step ? s.step.now / s.step.was : 1;
  const step = s.step && `A step takes ${show(Math.round(s.step.now), "ps")} instead of ${show(Math.round(s.step.was), "ps")} (${ratio > 4 || ratio < 0.25 ? `\u00d7${show(ratio, "")}` : signed(ratio - 1, "fraction")}).`;
  return [parts.length ? `Findings: ${parts.join(", ")}.` : "No findings in either.", step].filter(Boolean).join(" ");
}

/* --- as text --- */

export const STATUS_WORDS: Record<Word, string> = { OPTIMAL: "OPTIMAL", NEEDS_ATTENTION: "NEEDS ATTENTION", "": "n/a" };

/** `link`: an address in full; "": it has none. */
export function suggestionsMarkdown(r: Report, title: string, before: Since | null, link: (e: Evidence | null, f: Finding | null) => string, page: string): string {
  const status = statusOf(r);
  const md = markdownText;
  const lines = [`## ${md(title)}`, ""];
  if (status) lines.push(`**${STATUS_WORDS[status.word]}**${status.why ? `: ${md(status.why)}` : ""}`, "");
  lines.push(...sentencesOf(r).map(md), "", "### Key figures", "");
  for (const m of keyFigures(r)) lines.push(`- ${md(m.label)}: ${m.value === null ? `n/a (${md(m.reason ?? "not in the profile")})` : `**${md(show(m.value, m.unit))}**`}${m.note ? ` (${md(m.note)})` : ""}`);
  if (before) {
    lines.push("", `### Since ${md(before.run)}`, "", md(sinceWords(before)));
    for (const g of before.gone) lines.push(`- gone: ${md(g.words)} (was ${show(g.was, "fraction")})`);
  }
  for (const f of findingsIn(r)) {
    const change = before?.changed.get(f.rule);
    lines.push("", `### ${f.priority}: ${md(f.words)} (${show(f.share, "fraction")} ${shareOf(f.rule)}${change ? `; ${change.words}` : ""})`, "", "Evidence:", "");
    for (const e of f.evidence) {
      const to = link(e, f);
      const words = `${md(e.words)}${Number.isNaN(e.share) ? "" : `: ${show(e.share, "fraction")}`}`;
      lines.push(to ? `- [${words}](${to})` : `- ${words}`);
    }
    lines.push("", `Expected impact: ${impactWords(f)}`, "", `Fix: ${md(f.fix)}`);
  }
  for (const n of r.notes.filter((x) => x.severity !== "info")) lines.push("", `${n.severity}: ${md(n.text)}`);
  if (r.missing_hosts.length) lines.push("", `${plural(r.missing_hosts.length, "host")} could not be read: ${r.missing_hosts.slice(0, 10).map((h) => md(h.host)).join(", ")}`);
  lines.push("", page, "");
  return lines.join("\n");
}
