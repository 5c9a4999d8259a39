// All runs, newest first.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { Api, asProblem, isAbort, type Problem } from "../../api/client";
import { watch } from "../../api/events";
import type { RunRow, Runs } from "../../api/types";
import { ago, bytes, count, date, plural } from "../../model/format";
import { go, here } from "../../model/location";
import { Icon } from "../../widgets/icon";
import { ProblemPanel } from "../../widgets/problem";
import { Bar, Loading } from "../../widgets/shell";

const PAGE = 100;
const EVERY = 5000; // ms between looks for new runs

export function RunsPage() {
  const { root, search } = here.value;
  const q = new URLSearchParams(search).get("q") ?? "";
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
      if (e.key !== "/" || e.ctrlKey || e.metaKey || e.target instanceof HTMLInputElement) return;
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
      answer.value = { ...got, runs: [...have.runs, ...got.runs] };
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
              const text = e.currentTarget.value;
              go(`${root}${text ? `?q=${encodeURIComponent(text)}` : ""}`, true);
            }}
          />
        </search>
      </Bar>
      <main class="page">
        {problem.value && <ProblemPanel problem={problem.value} retry={() => turn.value++} />}
        {!a && !problem.value && <Loading what="Listing the runs…" />}
        {a && <RunsOf a={a} q={q} root={root} more={() => void more()} />}
      </main>
    </>
  );
}

function RunsOf({ a, q, root, more }: { a: Runs; q: string; root: string; more: () => void }) {
  const ticked = useSignal<readonly string[]>([]);
  if (a.runs.length === 0) return <Empty a={a} q={q} />;
  const tick = (run: string): void => {
    const now = ticked.peek();
    ticked.value = now.includes(run) ? now.filter((r) => r !== run) : [...now, run].slice(-2);
  };
  return (
    <>
      <div class="page-head">
        <h1>{!a.total_exact && "at least "}{plural(a.total, "run")}{q && <> matching “{q}”</>}</h1>
        <p>in <code>{a.location}</code>{a.cut && `: ${a.cut}`}</p>
      </div>
      <div class="sheet">
        <table class="runs">
          <thead>
            <tr><th scope="col" class="tick-cell"><span class="unseen">Compare</span></th><th scope="col">Run</th><th scope="col">Captured</th><th scope="col" class="number">Hosts</th><th scope="col" class="number">Size</th><th scope="col">State</th><th scope="col"><span class="unseen">Pages</span></th></tr>
          </thead>
          <tbody>{a.runs.map((r) => <RunLine key={r.run} r={r} root={root} ticked={ticked.value.includes(r.run)} tick={() => tick(r.run)} />)}</tbody>
        </table>
      </div>
      {a.next && <p class="none">{count(a.runs.length)} of {count(a.total)} are listed. <button type="button" class="button" onClick={more}>List more</button></p>}
      {ticked.value.length > 0 && <CompareBar runs={a.runs} ticked={ticked.value} root={root} clear={() => (ticked.value = [])} />}
    </>
  );
}

/** Two rows that were ticked: the older one is what the newer one is held against. */
function CompareBar({ runs, ticked, root, clear }: { runs: readonly RunRow[]; ticked: readonly string[]; root: string; clear: () => void }) {
  const age = (run: string): number => runs.find((r) => r.run === run)?.captured_ms ?? 0;
  const [a, b] = [...ticked].sort((x, y) => age(x) - age(y));
  return (
    <div class="compare-bar" role="region" aria-label="Compare">
      <Icon name="compare" />
      {b
        ? <span><b>{a}</b> against <b>{b}</b></span>
        : <span><b>{a}</b>: tick a second run to compare them</span>}
      {b && <a class="button primary" href={`${root}compare?a=${encodeURIComponent(a!)}&b=${encodeURIComponent(b)}`}>Compare</a>}
      <button type="button" class="tool" aria-label="Untick" title="Untick" onClick={clear}><Icon name="close" /></button>
    </div>
  );
}

function RunLine({ r, root, ticked, tick }: { r: RunRow; root: string; ticked: boolean; tick: () => void }) {
  const when = date(r.captured_ms);
  const page = r.hosts === 1 && r.state === "ready" ? "trace" : "run";
  return (
    <tr class={ticked ? "ticked" : ""}>
      <td class="tick-cell">{r.state === "ready" && <input type="checkbox" checked={ticked} aria-label={`Compare ${r.run}`} title="Tick two to compare them" onChange={tick} />}</td>
      <th scope="row"><a href={`${root}${page}?run=${encodeURIComponent(r.run)}`}>{r.run}</a></th>
      <td class="when" title={when.iso && `${when.iso}\n${r.captured_from === "name" ? "from the run's name" : "from the file's time"}`}>
        {when.text} <span class="ago">{ago(r.captured_ms, Date.now())}</span>
      </td>
      <td class="number">{count(r.hosts)}</td>
      <td class="number" title={`${count(r.bytes)} bytes`}>{bytes(r.bytes)}</td>
      <td><span class={`pill ${r.state}`}>{r.state}</span> {r.note && <span class="note">{r.note}</span>}</td>
      <td class="row-links">
        {r.state === "ready" && (
          <>
            <a href={`${root}overview_page?run=${encodeURIComponent(r.run)}`} aria-label={`Overview of ${r.run}`}><Icon name="gauge" /> Overview</a>
            <a href={`${root}trace?run=${encodeURIComponent(r.run)}`} aria-label={`Timeline of ${r.run}`}><Icon name="timeline" /> Timeline</a>
          </>
        )}
      </td>
    </tr>
  );
}

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
        <dt>Expected</dt><dd><code>{a.empty?.expected ?? "plugins/profile/<run>/<host>.xplane.pb"}</code></dd>
      </dl>
      <p>New runs appear here by themselves.</p>
    </div>
  );
}
