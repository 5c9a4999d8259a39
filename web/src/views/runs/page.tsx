// All runs, newest first.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { Api, asProblem, isAbort, type Problem } from "../../api/client";
import { watch } from "../../api/events";
import type { RunRow, Runs } from "../../api/types";
import type { RunMark } from "../../model/runmarks";
import { ago, bytes, count, date, plural } from "../../model/format";
import { isComplete, type Figures } from "../../model/figures";
import { go, here } from "../../model/location";
import { formatSort, parseSort, type Sort } from "../../model/tablemodel";
import { joinRuns, runHref } from "../../model/runname";
import { exact, natural, show } from "../../model/units";
import { figuresFor, wantFigures } from "../../shell/figures";
import { pinned, togglePin } from "../../shell/pins";
import { mark, marksOf } from "../../shell/runmarks";
import { isTyping } from "../../shell/typing";
import { KeptUploads, OpenFile } from "../../shell/upload";
import { Icon } from "../../widgets/icon";
import { ProblemPanel } from "../../widgets/problem";
import { Bar, Loading } from "../../widgets/shell";
import { Joins } from "./joins";
import { HiddenLine, MarkButton, MarkDialog, Marks } from "./marks";

const PAGE = 100;
const EVERY = 5000; // ms between looks for new runs

function runsHref(root: string, q: string, sort: Sort | null): string {
  const parts = [q && `q=${encodeURIComponent(q)}`, sort && `sort=${formatSort(sort)}`].filter(Boolean);
  return `${root}${parts.length ? `?${parts.join("&")}` : ""}`;
}

export function RunsPage() {
  const { root, search } = here.value;
  const q = new URLSearchParams(search).get("q") ?? "";
  const asked = parseSort(new URLSearchParams(search).get("sort"));
  const sort = asked && columns.some((c) => c.id === asked.column) ? asked : null;
  const api = useMemo(() => new Api(root), [root]);
  const answer = useSignal<Runs | null>(null);
  const problem = useSignal<Problem | null>(null);
  const turn = useSignal(0);
  const input = useRef<HTMLInputElement>(null);

  useEffect(() => {
    document.title = "Runs · xprofd";
    const abort = new AbortController();
    const timer = setTimeout(() => {
      api.json<Runs>("runs", { limit: PAGE, q: q || undefined }, abort.signal).then(
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
  }, [api, q, turn.value]);

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
      const got = await api.json<Runs>("runs", { limit: PAGE, q: q || undefined, page: have.next });
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
            onInput={(e) => {
              go(runsHref(root, e.currentTarget.value, sort), true);
            }}
          />
        </search>
        <OpenFile />
      </Bar>
      <main class="page broad">
        <KeptUploads root={root} />
        {problem.value && <ProblemPanel problem={problem.value} retry={() => turn.value++} />}
        {!a && !problem.value && <Loading what="Listing the runs…" />}
        {a && <RunsOf a={a} q={q} root={root} api={api} sort={sort} more={() => void more()} />}
      </main>
    </>
  );
}

type ColumnId = "run" | "captured" | "hosts" | "size" | "device" | "step" | "memory";
type Known = ReturnType<typeof figuresFor>;

const columns: { id: ColumnId; label: string; number?: boolean; wide?: boolean; title: string }[] = [
  { id: "run", label: "Run", title: "Name of the run" },
  { id: "captured", label: "Captured", title: "When it was captured" },
  { id: "hosts", label: "Hosts", number: true, wide: true, title: "Profiles in the run" },
  { id: "size", label: "Size", number: true, title: "Of its files" },
  { id: "device", label: "Device", wide: true, title: "Kind of the devices" },
  { id: "step", label: "Step time", number: true, title: "Mean of its steps" },
  { id: "memory", label: "Peak memory", number: true, wide: true, title: "Most memory in use on a device" },
];

function keyOf(r: RunRow, f: Figures | null, by: ColumnId): number | string | null {
  switch (by) {
    case "run": return natural(r.run);
    case "captured": return r.captured_ms;
    case "hosts": return r.hosts;
    case "size": return r.bytes;
    default: return f?.[by] ?? null;
  }
}

/** What is not known stands last either way. */
function sorted(rows: readonly RunRow[], known: ReadonlyMap<string, Known>, sort: Sort): RunRow[] {
  const by = sort.column as ColumnId;
  const keyed = rows.map((r, i) => ({ r, i, key: keyOf(r, known.get(r.run)?.figures ?? null, by) }));
  keyed.sort((a, b) => {
    if (a.key === null || b.key === null) return a.key !== null ? -1 : b.key !== null ? 1 : a.i - b.i;
    return a.key === b.key ? a.i - b.i : (a.key < b.key ? -1 : 1) * (sort.descending ? -1 : 1);
  });
  return keyed.map((k) => k.r);
}

const MOST_TICKED = 16;
const AT_ONCE = 20; // runs whose figures one press asks for

function RunsOf({ a, q, root, api, sort, more }: { a: Runs; q: string; root: string; api: Api; sort: Sort | null; more: () => void }) {
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
  const known = new Map(a.runs.map((r) => [r.run, figuresFor(api, r)]));
  const rows = sort ? sorted(listed, known, sort) : listed;
  const unknown = rows.filter((r) => r.state === "ready" && !known.get(r.run)!.waiting && !isKnown(known.get(r.run)!));
  const order = (id: ColumnId): void => {
    const now = sort?.column === id ? sort : null;
    const next = { column: id, descending: now ? !now.descending : id !== "run" && id !== "device" };
    go(runsHref(root, q, now && now.descending === (id === "run" || id === "device") ? null : next), true);
  };
  return (
    <>
      <div class="page-head row">
        <div>
          <h1>{!a.total_exact && "at least "}{plural(a.total, "run")}{q && <> matching “{q}”</>}</h1>
          <p>in <code>{a.location}</code>{a.cut && `: ${a.cut}`}{sort && a.next && <> · ordered are the {count(a.runs.length)} that are listed</>}
            {label.value && <> · only those with the label <b class="run-label">{label.value}</b> <button type="button" class="link" onClick={() => (label.value = "")}>All</button></>}
          </p>
        </div>
        {unknown.length > 0 && (
          <button
            type="button" class="button push" title="Device, step time and peak memory come from the profiles themselves: this opens them, one after the other"
            onClick={() => wantFigures(api, unknown.slice(0, AT_ONCE))}
          >
            <Icon name="gauge" /> Get figures{unknown.length > AT_ONCE ? ` of ${AT_ONCE}` : ""}
          </button>
        )}
      </div>
      <Joins joins={a.joins ?? []} root={root} />
      <div class="sheet">
        <table class="runs list">
          <thead>
            <tr>
              <th scope="col" class="tick-cell"><span class="unseen">Compare</span></th>
              {columns.map((c) => (
                <th
                  key={c.id} scope="col" class={`${c.number ? "number" : ""} ${c.wide ? "wide" : ""}`} title={c.title}
                  aria-sort={sort?.column !== c.id ? "none" : sort.descending ? "descending" : "ascending"}
                >
                  <button type="button" class="sorter" onClick={() => order(c.id)}>
                    {c.label}<span class="arrow" aria-hidden="true">{sort?.column !== c.id ? "" : sort.descending ? " ↓" : " ↑"}</span>
                  </button>
                </th>
              ))}
              <th scope="col">State</th><th scope="col"><span class="unseen">Pages</span></th>
            </tr>
          </thead>
          <tbody>{rows.map((r) => <RunLine key={r.run} r={r} root={root} known={known.get(r.run)!} get={() => wantFigures(api, [r])} ticked={ticked.value.includes(r.run)} tick={() => tick(r.run)} m={marks.get(r.run)} edit={() => (edited.value = r.run)} choose={(l) => (label.value = l)} />)}</tbody>
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

function isKnown(k: Known): boolean {
  return k.problem !== "" || (k.figures !== null && isComplete(k.figures));
}

/** One of the figures: known, being asked for, not in the profile and why, or to be had by a click. */
function FigureCell({ id, known, run, get, able }: { id: "device" | "step" | "memory"; known: Known; run: string; get: () => void; able: boolean }) {
  const { figures: f, waiting, problem } = known;
  const kind = id === "device" ? "wide" : id === "memory" ? "number wide" : "number step-cell";
  const v = f?.[id] ?? null;
  if (v !== null) return <td class={`${kind} figure`} title={exact(v, id === "step" ? "ps" : id === "memory" ? "bytes" : "")}>{show(v, id === "step" ? "ps" : id === "memory" ? "bytes" : "")}</td>;
  if (waiting) return <td class={`${kind} na`}>{id === "step" ? <span class="spinner" role="status" aria-label={`Getting the figures of ${run}`} /> : "…"}</td>;
  if (problem) return <td class={`${kind} na`} title={problem}>n/a</td>;
  if (f && (id !== "memory" || isComplete(f))) return <td class={`${kind} na`} title={f.why[id] ?? ""}>n/a</td>;
  if (!able || id === "device") return <td class={`${kind} na`}>–</td>;
  return <td class={kind}><button type="button" class="get" tabIndex={id === "memory" ? -1 : 0} title="Get the figures of this run" aria-label={`Get the figures of ${run}`} onClick={get}>get</button></td>;
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

interface LineProps {
  r: RunRow;
  root: string;
  known: Known;
  get: () => void;
  ticked: boolean;
  tick: () => void;
  m: RunMark | undefined;
  edit: () => void;
  choose: (label: string) => void;
}

function RunLine({ r, root, known, get, ticked, tick, m, edit, choose }: LineProps) {
  const when = date(r.captured_ms);
  const page = r.hosts === 1 && r.state === "ready" ? "trace" : "run";
  return (
    <tr class={`${ticked ? "ticked" : ""} ${m?.hidden ? "hidden-run" : ""}`}>
      <td class="tick-cell">{r.state === "ready" && <input type="checkbox" checked={ticked} aria-label={`Compare ${r.run}`} title="Tick two to compare them, or those that are one capture to join them" onChange={tick} />}</td>
      <th scope="row"><a href={`${root}${page}?run=${encodeURIComponent(r.run)}`}>{r.run}</a><Marks m={m} choose={choose} /></th>
      <td class="when" title={when.iso && `${when.iso}\n${r.captured_from === "name" ? "from the run's name" : "from the file's time"}`}>
        {when.text} <span class="ago">{ago(r.captured_ms, Date.now())}</span>
      </td>
      <td class="number wide">{count(r.hosts)}</td>
      <td class="number size-cell" title={`${count(r.bytes)} bytes`}>{bytes(r.bytes)}</td>
      {(["device", "step", "memory"] as const).map((id) => <FigureCell key={id} id={id} known={known} run={r.run} get={get} able={r.state === "ready"} />)}
      <td class="state-cell"><span class={`pill ${r.state}`}>{r.state}</span> {r.note && <span class="note">{r.note}</span>}</td>
      <td class="row-links">
        <MarkButton run={r.run} m={m} open={edit} />
        {r.state === "ready" && (
          <>
            <button
              type="button" class="pin-run" aria-pressed={pinned(root).includes(r.run)} aria-label={`Pin ${r.run}`} title="Pin: it then stands in the menu, in this browser"
              onClick={() => togglePin(root, r.run)}
            >
              <Icon name="pin" />
            </button>
            <a href={`${root}overview_page?run=${encodeURIComponent(r.run)}`} aria-label={`Overview of ${r.run}`} title="Overview"><Icon name="gauge" /> <span class="word">Overview</span></a>
            <a href={`${root}trace?run=${encodeURIComponent(r.run)}`} aria-label={`Timeline of ${r.run}`} title="Timeline"><Icon name="timeline" /> <span class="word">Timeline</span></a>
          </>
        )}
      </td>
    </tr>
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
  unsupported: "The profiles are in a form that this version does not read.",
};

function Empty({ a, q }: { a: Runs; q: string }) {
  if (q)
    return (
      <div class="empty">
        <h2>No run matches “{q}”</h2>
        <p>Searched in <code>{a.location}</code>.</p>
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
