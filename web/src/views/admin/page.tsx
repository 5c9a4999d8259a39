// What this instance is doing: for whoever looks after it.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { Api, asProblem, isAbort, type Problem } from "../../api/client";
import { bytes, count, duration } from "../../model/format";
import { here } from "../../model/location";
import { jobs } from "../../shell/jobs";
import { ProblemPanel } from "../../widgets/problem";
import { Bar, Loading } from "../../widgets/shell";
import { SharedLinks } from "./links";

interface Status {
  version: string;
  role: "all" | "frontend";
  location: string;
  uptime_ms: number;
  resident_bytes: number;
  budget_bytes?: number;
  profile_bytes?: number;
  parts?: number;
  pinned?: number;
  hits?: number;
  loads?: number;
  evictions?: number;
  refused?: number;
  cancelled?: number;
  shards?: number;
  asks?: number;
  retries?: number;
  failed?: number;
}

interface Me {
  kind: string;
  name: string;
  auth: string;
}

interface Project {
  project: string;
  location: string;
  right: "view" | "edit" | "admin";
}

const EVERY = 3000;

const figures: { of: keyof Status; label: string; what: string; show?: (n: number) => string }[] = [
  { of: "uptime_ms", label: "Up for", what: "Since this process started", show: (n) => duration(n * 1e9, 3) },
  { of: "resident_bytes", label: "Memory of the process", what: "As the system counts it", show: bytes },
  { of: "profile_bytes", label: "Profiles in memory", what: "Of the budget", show: bytes },
  { of: "budget_bytes", label: "Budget", what: "--memory-budget; above it the least needed profile goes", show: bytes },
  { of: "parts", label: "Files in memory", what: "Hosts' profiles that answer at once" },
  { of: "pinned", label: "In use", what: "Of these, being asked now" },
  { of: "hits", label: "Found in memory", what: "Asks that needed no load" },
  { of: "loads", label: "Loads", what: "Files that were read" },
  { of: "evictions", label: "Evicted", what: "Files that made room for others" },
  { of: "refused", label: "Refused", what: "For want of memory: answered with 503" },
  { of: "cancelled", label: "Cancelled", what: "Work that nobody waited for any more" },
  { of: "shards", label: "Shards", what: "That this frontend knows" },
  { of: "asks", label: "Asked shards", what: "Requests that were passed on" },
  { of: "retries", label: "Asked again", what: "Of another shard, as the first one did not answer" },
  { of: "failed", label: "Failed", what: "No shard could answer" },
];

function Rows({ head, children, label }: { head: string[]; children: ComponentChildren; label: string }) {
  return (
    <div class="sheet">
      <table class="runs" aria-label={label}>
        <thead><tr>{head.map((h) => <th key={h} scope="col">{h}</th>)}</tr></thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

function Instance({ s }: { s: Status }) {
  return (
    <section aria-label="Instance">
      <p>xprofd {s.version}, {s.role === "frontend" ? "a frontend: profiles are in its shards" : "one process with everything"}. Profiles are read from <code>{s.location}</code>.</p>
      <h2 class="unseen">Figures</h2>
      <div class="tiles">
        {figures.filter((f) => s[f.of] !== undefined).map((f) => (
          <div key={f.of} class="tile" title={f.what}>
            <header><h3>{f.label}</h3></header>
            <p class="tile-value">{(f.show ?? count)(Number(s[f.of]))}</p>
            <p class="tile-note">{f.what}</p>
          </div>
        ))}
      </div>
    </section>
  );
}

export function AdminPage() {
  const { root, project } = here.value;
  const api = useMemo(() => new Api(root), [root]);
  const status = useSignal<Status | null>(null);
  const me = useSignal<Me | null>(null);
  const projects = useSignal<Project[]>([]);
  const problem = useSignal<Problem | null>(null);
  const turn = useSignal(0);
  useEffect(() => {
    document.title = "Admin · xprofd";
    const abort = new AbortController();
    const look = (): void => {
      if (document.visibilityState !== "visible") return;
      api.json<Status>("status", {}, abort.signal).then(
        (s) => ((status.value = s), (problem.value = null)),
        (e: unknown) => isAbort(e) || (problem.value = asProblem(e)),
      );
    };
    look();
    const timer = setInterval(look, EVERY);
    api.json<Me>("me", {}, abort.signal).then((m) => (me.value = m), () => undefined);
    api.json<{ projects: Project[] }>("projects", {}, abort.signal).then((p) => (projects.value = p.projects), () => undefined);
    return () => (clearInterval(timer), abort.abort());
  }, [api, turn.value]);
  const base = root.slice(0, -`${project}/`.length);
  return (
    <>
      <Bar crumbs={<b>Admin</b>} />
      <main class="page broad">
        <div class="page-head">
          <h1>Admin</h1>
          <p>How this instance does, who you are to it, and what you may see.</p>
        </div>
        {problem.value && <ProblemPanel problem={problem.value} retry={() => turn.value++} />}
        {!status.value && !problem.value && <Loading what="Asking the server…" />}
        {status.value && <Instance s={status.value} />}
        <h2 class="part">You</h2>
        {me.value && <p>{me.value.kind === "local" ? "This machine's user: no identity is asked for (--auth none), whoever reaches the port may see and edit." : <>Signed in as <b>{me.value.name}</b> ({me.value.auth}).</>}</p>}
        {projects.value.length > 0 && (
          <Rows label="Projects" head={["Project", "Profiles in", "Your right"]}>
            {projects.value.map((p) => <tr key={p.project}><th scope="row"><a href={`${base}${p.project}/`}>{p.project}</a></th><td><code>{p.location}</code></td><td>{p.right}</td></tr>)}
          </Rows>
        )}
        <h2 class="part">Share links</h2>
        <SharedLinks root={root} />
        <h2 class="part">Jobs of this page</h2>
        {jobs.value.length === 0
          ? <p class="none">Nothing is in work. Loads, reports and uploads that take longer appear in the bar of every page, with their progress and a way to end them.</p>
          : <ul>{jobs.value.map((j) => <li key={j.id}>{j.label} <code>{j.run}</code></li>)}</ul>}
        <h2 class="part">More</h2>
        <p class="none">Health and metrics for Prometheus are on the port of <code>--admin-port</code>; logs, traces and audit have options of their own (<code>xprofd --help</code>).</p>
        <p class="none">
          These pages hold Preact and its signals (MIT). The program is linked with h2o, libuv, jansson, cjose (MIT), OpenSSL (Apache 2.0), curl (curl's), zlib (zlib's), zstd, ISA-L, jemalloc and protobuf-c (BSD).
          Texts about TPU counters and some sentences of tools are XProf's (Apache 2.0).
        </p>
      </main>
    </>
  );
}
