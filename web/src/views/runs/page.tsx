// All runs, newest first.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { Api, asProblem, isAbort, type Problem } from "../../api/client";
import { watch } from "../../api/events";
import type { RunRow, Runs } from "../../api/types";
import { bytes, count, plural } from "../../model/format";
import { go, here } from "../../model/location";
import { columns, historiesOf, shownColumns } from "../../model/runcolumns";
import { formatSort, parseSort, type Sort } from "../../model/tablemodel";
import { joinRuns, runHref } from "../../model/runname";
import { figureState, wantFigures } from "../../shell/figures";
import { mark, marksOf } from "../../shell/runmarks";
import { isTyping } from "../../shell/typing";
import { KeptUploads, OpenFile } from "../../shell/upload";
import { Icon } from "../../widgets/icon";
import { ProblemPanel } from "../../widgets/problem";
import { Bar, Loading } from "../../widgets/shell";
import { Joins } from "./joins";
import { HiddenLine, MarkDialog } from "./marks";
import { ColumnChooser, Head, RunLine, type Widths } from "./table";

const PAGE = 100;
const EVERY = 5000; // ms between looks for new runs

interface Choice {
  q: string;
  sort: Sort | null;
  changed: ReadonlySet<string>; // columns shown or hidden against the usual
}

function runsHref(root: string, { q, sort, changed }: Choice): string {
  const parts = [q && `q=${encodeURIComponent(q)}`, sort && `sort=${formatSort(sort)}`, changed.size > 0 && `cols=${[...changed].join()}`].filter(Boolean);
  return `${root}${parts.length ? `?${parts.join("&")}` : ""}`;
}

export function RunsPage() {
  const { root, search } = here.value;
  const q = new URLSearchParams(search).get("q") ?? "";
  const asked = parseSort(new URLSearchParams(search).get("sort"));
  const sort = asked && columns.some((c) => c.id === asked.column && !c.unsorted) ? asked : null;
  const changed = new Set((new URLSearchParams(search).get("cols") ?? "").split(",").filter((id) => columns.some((c) => c.id === id && !c.fixed)));
  const by = formatSort(sort);
  const api = useMemo(() => new Api(root), [root]);
  const answer = useSignal<Runs | null>(null);
  const problem = useSignal<Problem | null>(null);
  const turn = useSignal(0);
  const input = useRef<HTMLInputElement>(null);

  useEffect(() => {
    document.title = "Runs · xprofd";
    const abort = new AbortController();
    const timer = setTimeout(() => {
      api.json<Runs>("runs", { limit: PAGE, q: q || undefined, sort: by || undefined }, abort.signal).then(
        (got) => {
          answer.value = got;
          problem.value = null;
        },
        (e: unknown) => isAbort(e) || (problem.value = asProblem(e)),
      );
    }, answer.peek() ? 120 : 0);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [api, q, by, turn.value]);

  useEffect(() => {
    // Unchanged, the answer is a 304 without a body. A list that was paged on stays as it is.
    const look = (): void => {
      if (document.visibilityState === "visible" && (answer.peek()?.runs.length ?? 0) <= PAGE) turn.value++;
    };
    let version = "";
    const runs = (data: string): void => {
      if (version) look(); // the first one says what is there already
      version = data;
    };
    const unwatch = watch(api.url("events"), { runs }, look, EVERY);
    const key = (e: KeyboardEvent): void => {
      if (e.key !== "/" || e.ctrlKey || e.metaKey || isTyping(e) || document.querySelector("dialog[open]")) return;
      e.preventDefault();
      input.current?.select();
    };
    document.addEventListener("keydown", key);
    return () => {
      unwatch();
      document.removeEventListener("keydown", key);
    };
  }, [api]);

  const more = async (): Promise<void> => {
    const have = answer.peek();
    if (!have?.next) return;
    try {
      const got = await api.json<Runs>("runs", { limit: PAGE, q: q || undefined, sort: by || undefined, page: have.next });
      answer.value = { ...got, runs: [...have.runs, ...got.runs], joins: [...(have.joins ?? []), ...(got.joins ?? [])] };
    } catch (e) {
      problem.value = asProblem(e);
    }
  };

  const a = answer.value;
  return (
    <>
      <Bar crumbs={<b>Runs</b>}>
        <search class="search">
          <Icon name="search" />
          <input
            ref={input} type="text" spellcheck={false} placeholder="Search runs  ( / )" aria-label="Search runs" value={q}
            title={"word: in the name, -word: not in it\ndevice:v5  kind:demand  state:unreadable  program:train  work:inference\nstep>10ms  mfu<40%  memory>8GiB  size>1GiB  hosts>=4  findings>0  dropped>0"}
            onInput={(e) => {
              go(runsHref(root, { q: e.currentTarget.value, sort, changed }), true);
            }}
          />
        </search>
        <OpenFile />
      </Bar>
      <main class="page broad">
        <KeptUploads root={root} />
        {problem.value && <ProblemPanel problem={problem.value} retry={() => turn.value++} />}
        {!a && !problem.value && <Loading what="Listing the runs…" />}
        {a && <RunsOf a={a} choice={{ q, sort, changed }} root={root} api={api} more={() => void more()} again={() => turn.value++} />}
      </main>
    </>
  );
}

const MOST_TICKED = 16;
const AT_ONCE = 20; // runs whose figures one press asks for

function RunsOf({ a, choice, root, api, more, again }: { a: Runs; choice: Choice; root: string; api: Api; more: () => void; again: () => void }) {
  const { q, sort, changed } = choice;
  const widths: Widths = useSignal<Record<string, number>>({});
  const ticked = useSignal<readonly string[]>([]);
  const label = useSignal("");
  const showHidden = useSignal(false);
  const lastHidden = useSignal("");
  const edited = useSignal("");
  if (a.runs.length === 0) return <Empty a={a} q={q} />;
  const tick = (run: string): void => {
    const now = ticked.peek();
    ticked.value = now.includes(run) ? now.filter((r) => r !== run) : [...now, run].slice(-MOST_TICKED);
  };
  const marks = marksOf(root);
  const hide = (run: string): void => {
    mark(root, run, { hidden: true });
    lastHidden.value = run;
    ticked.value = ticked.peek().filter((r) => r !== run);
  };
  const hidden = a.runs.filter((r) => marks.get(r.run)?.hidden).length;
  const listed = a.runs.filter((r) => {
    const m = marks.get(r.run);
    return (showHidden.value || !m?.hidden) && (!label.value || m?.labels.includes(label.value));
  });
  const histories = historiesOf(a.runs);
  const of = shownColumns(a.runs, changed, histories);
  const unknown = listed.filter((r) => {
    const { waiting, problem } = figureState(api, r.run);
    return r.state === "ready" && !r.facts && !waiting && !problem;
  });
  const get = (list: readonly RunRow[]): void => wantFigures(api, list, again);
  const to = (next: Partial<Choice>): void => go(runsHref(root, { ...choice, ...next }), true);
  return (
    <>
      <div class="page-head row">
        <div>
          <h1>{!a.total_exact && "at least "}{plural(a.total, "run")}{q && <> matching “{q}”</>}</h1>
          <p>in <code>{a.location}</code>{a.cut && `: ${a.cut}`}{sort && a.looked !== undefined && a.looked < a.total && <> · {count(a.total - a.looked)} were not looked into yet and stand last</>}
            {label.value && <> · only those with the label <b class="run-label">{label.value}</b> <button type="button" class="link" onClick={() => (label.value = "")}>All</button></>}
          </p>
        </div>
        <div class="row push">
          {unknown.length > 0 && (
            <button
              type="button" class="button get-figures" onClick={() => get(unknown.slice(0, AT_ONCE))}
              title={`Step time and the like come from the profiles themselves: this opens them, one after the other.${a.figures_limit ? ` Those of runs up to ${bytes(a.figures_limit)} come by themselves, while nobody waits for anything.` : ""}`}
            >
              <Icon name="gauge" /> Get figures{unknown.length > AT_ONCE ? ` of ${AT_ONCE}` : ""}
            </button>
          )}
          <ColumnChooser of={of} changed={changed} choose={(ids) => to({ changed: ids })} />
        </div>
      </div>
      <Joins joins={a.joins ?? []} root={root} />
      <div class="sheet">
        <table class="runs list">
          <thead>
            <tr>
              <th scope="col" class="tick-cell"><span class="unseen">Compare</span></th>
              {of.shown.map((c) => <Head key={c.id} c={c} sort={sort} order={(next) => to({ sort: next })} widths={widths} />)}
              <th scope="col"><span class="unseen">Pages</span></th>
            </tr>
          </thead>
          <tbody>
            {listed.map((r) => (
              <RunLine
                key={r.run} r={r} root={root} api={api} shown={of.shown} widths={widths} history={histories.get(r.run)} get={() => get([r])} ticked={ticked.value.includes(r.run)}
                tick={() => tick(r.run)} m={marks.get(r.run)} edit={() => (edited.value = r.run)} choose={(l) => (label.value = l)}
              />
            ))}
          </tbody>
        </table>
      </div>
      {edited.value && (
        <MarkDialog key={edited.value} root={root} run={edited.value} m={marks.get(edited.value)} hide={hide.bind(null, edited.value)} close={() => (edited.value = "")} />
      )}
      <HiddenLine
        last={marks.get(lastHidden.value)?.hidden ? lastHidden.value : ""} undo={() => mark(root, lastHidden.value, { hidden: false })}
        hidden={hidden} shown={showHidden.value} flip={() => (showHidden.value = !showHidden.value)}
      />
      {a.next && <p class="none">{count(a.runs.length)} of {count(a.total)} are listed. <button type="button" class="button" onClick={more}>List more</button></p>}
      {ticked.value.length > 0 && <CompareBar runs={a.runs} ticked={ticked.value} root={root} clear={() => (ticked.value = [])} />}
    </>
  );
}

/** Two rows that were ticked: the older one is what the newer one is held against. Any number may be one capture. */
function CompareBar({ runs, ticked, root, clear }: { runs: readonly RunRow[]; ticked: readonly string[]; root: string; clear: () => void }) {
  const age = (run: string): number => runs.find((r) => r.run === run)?.captured_ms ?? 0;
  const order = [...ticked].sort((x, y) => age(x) - age(y));
  const [a, b] = order;
  return (
    <div class="compare-bar" role="region" aria-label="Compare">
      <Icon name="compare" />
      {order.length > 2
        ? <span><b>{count(order.length)} runs</b></span>
        : b
          ? <span><b>{a}</b> against <b>{b}</b></span>
          : <span><b>{a}</b>: tick a second run to compare them</span>}
      {order.length === 2 && <a class="button primary" href={`${root}compare?a=${encodeURIComponent(a!)}&b=${encodeURIComponent(b!)}`}>Compare</a>}
      {b && <a class="button" href={runHref(root, joinRuns(order))} title="Where each host of one capture wrote a run of its own: all of them as one run">Open joined</a>}
      <button type="button" class="tool" aria-label="Untick" title="Untick" onClick={clear}><Icon name="close" /></button>
    </div>
  );
}

/** What can be done about an empty list, by its reason. */
const reasons: Record<string, string> = {
  denied: "The server may not read it: give the user that runs it the right to.",
  not_found: "It is not there any more: was it moved, or is a disk not mounted?",
  storage: "The place did not answer as it should.",
  nothing: "It is empty: nothing has been captured into it yet, or it is not the folder that was meant.",
  other_files: "There are files, but none is called as a profile is: is this the folder that the profiler wrote to?",
  empty_runs: "There are folders of runs without a profile in them: those captures failed, or are still being written.",
};

function Empty({ a, q }: { a: Runs; q: string }) {
  if (q)
    return (
      <div class="empty">
        <h2>No run matches “{q}”</h2>
        <p>Searched in <code>{a.location}</code>.{/[:<>=]/.test(q) && " A run whose figures are not known yet matches no word about them."}</p>
      </div>
    );
  return (
    <div class="empty">
      <h2>No profiles yet</h2>
      <dl>
        <dt>Read</dt><dd><code>{a.empty?.read ?? a.location}</code></dd>
        <dt>Found</dt><dd>{a.empty?.found ?? "nothing"}</dd>
        {reasons[a.empty?.reason ?? ""] && <><dt>Why</dt><dd>{reasons[a.empty!.reason!]}</dd></>}
        <dt>Expected</dt><dd><code>{a.empty?.expected ?? "plugins/profile/<run>/<host>.xplane.pb"}</code></dd>
      </dl>
      <p>New runs appear here by themselves. A profile on this machine can be dropped on the page, or <a href="captures">taken</a> first.</p>
    </div>
  );
}
