// The run that all pages of this one are held against: how it is chosen, and what its reports say.
import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { Api, type Problem } from "../../api/client";
import type { Report } from "../../api/report";
import type { Runs } from "../../api/types";
import { doubtsOf, isOpTable, pairOps, scaledMetrics, scaleOf, twinProgram, type Base, type OpPairs } from "../../model/base";
import { runTitle } from "../../model/runname";
import { compareHref, encode, rangeArguments, rangeQuery, toolArguments, type ToolUrl } from "../../model/toolurl";
import type { Tool } from "../../model/tools";
import { Icon } from "../../widgets/icon";
import { Popover } from "../../widgets/popover";
import { useReport, type Loading } from "./load";
import { set } from "./state";

const ROWS = 100_000;
const OFFERED = 12;

/** What the tool's rows are depends on these, and so they are the base's, too. */
const SAME = new Set(["group_by", "idle", "zeros", "prefer", "memory_space", "sample"]);

/** What is told is about these, which another run has not: its figures are about something else. */
const NARROW = ["program_id", "module_name"];

/** Not what was asked for before, under another name. */
const fresh = (x: Loading): Report | null => (x.fresh ? x.report.value : null);

const PAIRED = 4;
const paired = new Map<string, OpPairs>();

/** Matched in parts, not while the page is drawn; kept for as long as it is about the same. */
function usePairs(key: string, now: Report | null, then: Report | null, scale: number): OpPairs | null {
  const made: Signal<{ key: string; pairs: OpPairs } | null> = useSignal(null);
  const old = paired.get(key);
  useEffect(() => {
    if (!key || !now || !then || paired.has(key)) return undefined;
    const steps = pairOps(now, then, scale);
    let timer: ReturnType<typeof setTimeout>;
    const go = (): void => {
      const at = steps.next();
      if (!at.done) return void (timer = setTimeout(go, 0));
      paired.set(key, at.value);
      for (const first of paired.keys()) if (paired.size > PAIRED) paired.delete(first);
      made.value = { key, pairs: at.value };
    };
    timer = setTimeout(go, 0);
    return () => clearTimeout(timer);
  }, [key, now, then]);
  return old ?? (made.value?.key === key ? made.value.pairs : null);
}

/** Of kernels, the base's is the one that this run's page is about. */
const likeKernel = (r: Report | null): Record<string, string> => {
  const name = r?.tool === "kernel_utilization" ? r.metrics.find((m) => m.id === "kernel_name")?.value : null;
  return name ? { prefer: String(name) } : {};
};

/** It has no such kernel: what it says is of another. */
const isOther = (r: Report): boolean => r.notes.some((n) => n.code === "kernel_other");

export interface Held {
  base: Base | null; // null: none is chosen
  problem: Problem | null;
  busy: boolean;
}

export function useBase(api: Api, s: ToolUrl, tool: Tool, r: Report | null, more: Record<string, string> | undefined): Held {
  const marker: Record<string, string> = s.marker ? { step_marker: s.marker } : {};
  const args = Object.fromEntries(Object.entries({ ...toolArguments(s), ...more, ...likeKernel(r) }).filter(([k]) => SAME.has(k)));
  const on = s.base !== "" && r !== null;
  const ops = on && tool.id !== "graph_viewer" && (r.tables.some(isOpTable) || (r.tree?.id ?? "").startsWith("by_"));
  const here = { run: s.run, host: s.hosts, ...rangeArguments(s) };
  const there = useReport(api, on ? { run: s.base, tool: tool.id, limit: ROWS, ...marker, ...args } : null);
  const overview = useReport(api, on ? { tool: "overview_page", limit: 1, ...here } : null);
  const overviewThere = useReport(api, on ? { run: s.base, tool: "overview_page", limit: 1, ...marker } : null);
  const opsHere = useReport(api, ops ? { tool: "hlo_stats", limit: ROWS, ...here } : null);
  const opsThere = useReport(api, ops ? { run: s.base, tool: "hlo_stats", limit: ROWS, ...marker } : null);
  // Of memory it is the program that is called alike.
  const first = fresh(there);
  const program = tool.id === "memory_viewer" && on && first ? twinProgram(r, first, s.args["program_id"] || s.program) : "";
  const twin = useReport(api, program ? { run: s.base, tool: tool.id, limit: ROWS, ...marker, ...args, program_id: program } : null);
  const all = [there, overview, overviewThere, ...(ops ? [opsHere, opsThere] : []), ...(program ? [twin] : [])];
  const byTime = s.range !== "" && s.steps === "";
  const [here1, there1] = [fresh(overview), fresh(overviewThere)];
  const scale = useMemo(() => (here1 && there1 ? scaleOf(here1, there1, byTime) : null), [here1, there1, byTime]);
  const [mine, theirs] = ops ? [fresh(opsHere), fresh(opsThere)] : [null, null];
  const key = scale && mine && theirs ? api.url("report", { ...here, ...marker, base: s.base, scale: scale.cores, rows: mine.tables[0]?.total_rows ?? 0, were: theirs.tables[0]?.total_rows ?? 0 }) : "";
  const pairs = usePairs(key, mine, theirs, scale?.cores ?? 1);
  const told = { ...toolArguments(s), ...more };
  const alike = tool.id === "memory_viewer" ? program !== "" : tool.id === "kernel_utilization" || (tool.id !== "graph_viewer" && !NARROW.some((k) => told[k]));
  const part = Boolean(s.args["lasso"]);
  const report = program ? fresh(twin) : first;
  const base = useMemo((): Base | null => {
    if (!on || report?.tool !== tool.id || isOther(report) || !here1 || !there1 || !scale) return null;
    return { run: s.base, report: { ...report, metrics: alike ? scaledMetrics(report.metrics, scale) : [] }, scale, ops: pairs, part, doubts: doubtsOf(here1, there1, ops ? theirs : null) };
  }, [on, s.base, tool, report, here1, there1, theirs, scale, pairs, alike, part]);
  return { base, problem: on ? all.find((x) => x.problem.value)?.problem.value ?? null : null, busy: on && (all.some((x) => x.busy.value) || (key !== "" && !pairs)) };
}

/** In the bar of each page of the run. */
export function BaseChip({ s, root, held }: { s: ToolUrl; root: string; held?: Held }) {
  if (!s.base)
    return (
      <span class="base-choice">
        <Popover title="Hold the pages against another run" label={<><Icon name="compare" /> <span class="cut">Base</span></>}>{(close) => <Choice s={s} root={root} close={close} />}</Popover>
      </span>
    );
  const why = held?.problem ? held.problem.message : "";
  const doubts = held?.base?.doubts ?? "";
  return (
    <span class={`range-chip base-chip ${why ? "ignored" : ""}`} role="group" aria-label="Base run">
      <Icon name={why || doubts ? "warn" : "compare"} />
      <span class="cut" title={why || `${doubts ? `${doubts} ` : ""}All pages of the run are held against ${runTitle(s.base)}; a click explains the whole change`}>
        {why ? <>base <s>{runTitle(s.base)}</s>: {why}</> : <>base <a href={bothHref(root, s)}>{runTitle(s.base)}</a></>}
      </span>
      {held?.busy && <span class="spinner" role="status" aria-label="Reading the base" />}
      <button type="button" class="tool" title="Against no other run" aria-label="Against no other run" onClick={() => set({ base: "" })}><Icon name="close" /></button>
    </span>
  );
}

/** Compare, the base as what was before. */
export const bothHref = (root: string, s: ToolUrl): string => `${compareHref(root, s.base, "")}&b=${encode(s.run)}${rangeQuery({ range: "", steps: "", marker: s.marker })}`;

function Choice({ s, root, close }: { s: ToolUrl; root: string; close: () => void }) {
  const q = useSignal("");
  const runs = useSignal<Runs | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    new Api(root).json<Runs>("runs", { limit: OFFERED + 1, q: q.value }, abort.signal).then((got) => (runs.value = got), () => undefined); // a name can be typed all the same
    return () => abort.abort();
  }, [root, q.value]);
  const take = (run: string): void => {
    if (run.trim() === "") return;
    set({ base: run.trim() });
    close();
  };
  const listed = (runs.value?.runs ?? []).filter((r) => r.state === "ready" && r.run !== s.run).slice(0, OFFERED);
  return (
    <form class="step-marker" onSubmit={(e) => (e.preventDefault(), take(listed.length === 1 ? listed[0]!.run : q.value))}>
      <label>Show by how much all pages changed from the run called
        <input class="field" type="text" spellcheck={false} autocomplete="off" value={q.value} placeholder="part of its name" onInput={(e) => (q.value = e.currentTarget.value)} />
      </label>
      {listed.length > 0
        ? <ul aria-label="Runs">{listed.map((r) => <li key={r.run}><button type="button" class="link" onClick={() => take(r.run)}>{runTitle(r.run)}</button></li>)}</ul>
        : runs.value && <p class="none">No other run is called so.</p>}
      <p class="row"><button type="submit" class="button">Use it</button></p>
    </form>
  );
}
