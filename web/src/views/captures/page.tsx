// Profiles of programs that run now: what is asked for, how it goes, what came of it. Where the server
// takes none it says why, and how profiles come here otherwise.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { Api, asProblem, isAbort, type Problem } from "../../api/client";
import { readCapture, type Capture, type Captures, type Continuous } from "../../api/captures";
import type { Run, Runs } from "../../api/types";
import { count, date, plural } from "../../model/format";
import { go, here } from "../../model/location";
import { isOver } from "../../model/captures";
import { runHref, runTitle } from "../../model/runname";
import { encode } from "../../model/toolurl";
import { captures, capturesProblem, record, refreshCaptures } from "../../shell/captures";
import { RecordingButtons, RefusedList, Since, Sure, useAct, user } from "../../shell/recording";
import { Icon } from "../../widgets/icon";
import { ProblemPanel } from "../../widgets/problem";
import { Bar, Loading } from "../../widgets/shell";
import { CaptureForm } from "./form";
import { JobCard } from "./job";
import { Snippet, Ways } from "./ways";

const LISTED = 20;

function address(root: string, run: string, id: string): string {
  const query = [run && `run=${encode(run)}`, id && `id=${encode(id)}`].filter(Boolean).join("&");
  return `${root}captures${query && `?${query}`}`;
}

/** null: not known yet. */
function useHosts(api: Api, run: string): readonly string[] | null {
  const hosts = useSignal<readonly string[] | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    hosts.value = run ? null : [];
    if (run) api.json<Run>("run", { run }, abort.signal).then((r) => (hosts.value = r.hosts.map((h) => h.host)), (e: unknown) => isAbort(e) || (hosts.value = []));
    return () => abort.abort();
  }, [api, run]);
  return hosts.value;
}

export function CapturesPage() {
  const { root, search } = here.value;
  const p = new URLSearchParams(search);
  const run = p.get("run") ?? "";
  const api = useMemo(() => new Api(root), [root]);
  const place = useSignal("");
  const hosts = useHosts(api, run);
  const data = captures.value;
  const problem = capturesProblem.value;
  useEffect(() => {
    document.title = "Captures · xprofd";
    const abort = new AbortController();
    api.json<Runs>("runs", { limit: 1 }, abort.signal).then((r) => (place.value = r.location), () => undefined);
    return () => abort.abort();
  }, [api]);
  const dir = place.value || "LOGDIR";
  return (
    <>
      <Bar crumbs={run ? <><a href={root}>Runs</a> <Icon name="right" /> <a href={runHref(root, run)} title={runTitle(run)}>{runTitle(run)}</a> <Icon name="right" /> <b>Captures</b></> : <b>Captures</b>} />
      <main class="page prose captures-page">
        <div class="page-head">
          <h1>Captures</h1>
          <p>{data?.enabled ? "Profile programs while they run." : "How a profile comes to be in the list of runs."}</p>
        </div>
        {!data && !problem && <Loading what="Asking what can be captured…" />}
        {problem && problem.status !== 404 && <ProblemPanel problem={problem} retry={refreshCaptures} />}
        {(data ? !data.enabled : problem !== null) && <Off reason={data?.reason ?? ""} dir={dir} />}
        {data?.enabled && (hosts === null ? <Loading what={`Reading the hosts of ${runTitle(run)}…`} /> : <On data={data} api={api} run={run} hosts={hosts} id={p.get("id") ?? ""} root={root} />)}
        {data?.enabled
          ? <details class="other-ways"><summary><h2>Other ways</h2></summary><Ways dir={dir} root={root} demand={false} /></details>
          : <Ways dir={dir} root={root} demand />}
      </main>
    </>
  );
}

function Off({ reason, dir }: { reason: string; dir: string }) {
  return (
    <>
      <p class="verdict"><span>This server does not take profiles itself{reason ? <>: {reason}</> : "."}</span></p>
      <section aria-labelledby="enable">
        <h2 id="enable">To capture from this page</h2>
        <p>Start xprofd with the programs that it may ask; each has called <code>jax.profiler.start_server(9999)</code>:</p>
        <Snippet what="start with targets" text={`xprofd --logdir ${/^[\w./:@%+=-]+$/.test(dir) ? dir : `'${dir.replaceAll("'", "'\\''")}'`} \\\n  --target worker-0=10.0.0.1:9999 --target worker-1=10.0.0.2:9999`} />
      </section>
    </>
  );
}

function On({ data, api, run, hosts, id, root }: { data: Captures; api: Api; run: string; hosts: readonly string[]; id: string; root: string }) {
  const fresh = useSignal("");
  const open = (to: string): void => go(address(root, run, to));
  const started = (to: string): void => {
    fresh.value = to;
    open(to);
  };
  return (
    <>
      {data.continuous.length > 0 && <Recording list={data.continuous} after={(c) => started(c.id)} />}
      <section aria-labelledby="new-capture">
        <h2 id="new-capture">New capture</h2>
        <CaptureForm data={data} run={run} hosts={hosts} started={started} />
      </section>
      <Jobs data={data} api={api} id={id} root={root} open={open} fresh={fresh.value} started={started} />
    </>
  );
}

function Recording({ list, after }: { list: readonly Continuous[]; after: (c: Capture) => void }) {
  const { act, busy, said } = useAct();
  const refused = useSignal<readonly { target: string; message: string; hint: string }[]>([]);
  return (
    <section class="recording panel" aria-labelledby="recording">
      <h2 id="recording"><span class="recording-dot" aria-hidden="true" /> Recording continuously <Since list={list} /></h2>
      <ul class="target-results" aria-label="Targets that record">
        {list.map((c) => (
          <li key={c.target}>
            <b class="target-name">{c.target}</b>
            <span class="pill">{c.state === "running" ? "records" : "not known"}</span>
            <span class="ago" title={date(c.since_ms).iso}>{c.since_ms === null ? "since when is not known" : `since ${date(c.since_ms).text}`}{c.by && `, by ${user(c.by)}`}</span>
            {list.length > 1 && <span class="push"><Sure label="Stop" ask={`Really stop ${c.target}?`} title={`Ends the recording of ${c.target}`} disabled={busy} act={() => void act(async () => { refused.value = await record([c.target], false); })} /></span>}
            {c.message && <p class="target-message">{c.message}</p>}
          </li>
        ))}
      </ul>
      <RecordingButtons list={list} after={after} />
      <RefusedList list={refused.value} what="still records" />
      {said}
    </section>
  );
}

/** The one in the address may be older than those that are listed. */
function useOne(api: Api, id: string, data: Captures): { one: Capture | null; problem: Problem | null } {
  const one = useSignal<Capture | null>(null);
  const problem = useSignal<Problem | null>(null);
  const listed = data.captures.some((c) => c.id === id);
  useEffect(() => {
    const abort = new AbortController();
    one.value = null;
    problem.value = null;
    if (id && !listed) readCapture(api, id, abort.signal).then((c) => (one.value = c), (e: unknown) => isAbort(e) || (problem.value = asProblem(e)));
    return () => abort.abort();
  }, [api, id, listed]);
  return { one: one.value, problem: problem.value };
}

function Jobs({ data, api, id, root, open, fresh, started }: { data: Captures; api: Api; id: string; root: string; open: (id: string) => void; fresh: string; started: (id: string) => void }) {
  const most = useSignal(LISTED);
  const { one, problem } = useOne(api, id, data);
  const all = one ? [one, ...data.captures] : data.captures;
  const shown = all.filter((c, i) => i < most.value || c.id === id || !isOver(c));
  // Without one in the address the newest is open while it is at work.
  const closed = useSignal<ReadonlySet<string>>(new Set()); // by hand
  const isOpen = (c: Capture): boolean => (id ? c.id === id : !isOver(c)) && !closed.value.has(c.id);
  useEffect(() => void (closed.value = new Set([...closed.peek()].filter((x) => x !== id))), [id]); // a link opens it
  const flip = (c: Capture): void => {
    const was = isOpen(c);
    const others = [...closed.peek()].filter((x) => x !== c.id);
    closed.value = new Set(was ? [...others, c.id] : others);
    if (!was) open(c.id);
    else if (id) open("");
  };
  return (
    <section aria-labelledby="captures-list">
      <h2 id="captures-list">{all.length ? plural(all.length, "capture") : "No capture yet"}</h2>
      {problem && <p class="none" role="alert">The capture of this address: {problem.message}</p>}
      {all.length === 0 && <p class="none">What is captured here is listed here, until the server is started anew.</p>}
      {shown.map((c) => <JobCard key={c.id} c={c} root={root} open={isOpen(c)} flip={() => flip(c)} started={started} fresh={c.id === fresh} />)}
      {shown.length < all.length && <p class="none">{count(shown.length)} of {count(all.length)} are listed. <button type="button" class="button" onClick={() => (most.value = Infinity)}>List all</button></p>}
    </section>
  );
}
