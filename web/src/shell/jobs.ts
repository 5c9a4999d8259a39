// Work that goes on: shown in the bar of every page, each with its progress and a way to end it.
import { signal, type ReadonlySignal, type Signal } from "@preact/signals";
import { isAbort, type Api } from "../api/client";
import type { Progress, Run } from "../api/types";
import { bytes, count, plural } from "../model/format";

export interface Job {
  id: number;
  label: string;
  run: string;
  progress: ReadonlySignal<Progress | null>; // of the profile's load; null: not known
  cancel: () => void;
}

export const jobs = signal<readonly Job[]>([]);

let last = 0;

/** Returns what ends the job. */
export function startJob(label: string, run: string, progress: Job["progress"], cancel: () => void): () => void {
  const id = ++last;
  jobs.value = [...jobs.peek(), { id, label, run, progress, cancel }];
  return () => void (jobs.value = jobs.peek().filter((j) => j.id !== id));
}

/** Of many hosts: how much of their files is in memory. */
function ofHosts(run: Run): Progress {
  const sum = (of: readonly Run["hosts"][number][]): number => of.reduce((a, h) => a + h.bytes, 0);
  const resident = run.hosts.filter((h) => h.state === "resident");
  return {
    state: "decoding", bytes_done: sum(resident), bytes_total: sum(run.hosts), events: 0, planes_done: 0, planes_total: 0, error: null,
    hosts_done: resident.length, hosts_total: run.hosts.length,
  };
}

/** Looks once how the load of a profile goes; without a host, of all the run's. */
async function look(api: Api, run: string, host: string, hosts: number, stop: AbortSignal): Promise<Progress> {
  if (host || hosts === 1) return api.json<Progress>("progress", { run, host: host || undefined }, stop);
  const got = await api.json<Run>("run", { run }, stop);
  return got.hosts.length === 1 ? api.json<Progress>("progress", { run, host: got.hosts[0]!.host }, stop) : ofHosts(got);
}

const LOOK_MS = 700;

/** Tells how a load goes until it is ended, or cannot be told: whoever waits for it says what is wrong. */
export function follow(api: Api, run: string, host: string, hosts: number, to: Signal<Progress | null>): () => void {
  const abort = new AbortController();
  let busy = false;
  const timer = setInterval(() => {
    if (busy) return;
    busy = true;
    look(api, run, host, hosts, abort.signal).then(
      (p) => {
        busy = false;
        to.value = p.state === "ready" || p.state === "failed" ? null : p;
      },
      (e: unknown) => isAbort(e) || clearInterval(timer),
    );
  }, LOOK_MS);
  return () => {
    clearInterval(timer);
    abort.abort();
  };
}

/** In words; "" when nothing is known. */
export function progressText(p: Progress | null): string {
  if (!p || p.bytes_total <= 0) return "";
  const done = `${bytes(p.bytes_done)} of ${bytes(p.bytes_total)}`;
  return p.hosts_total ? `${done}, ${count(p.hosts_done ?? 0)} of ${plural(p.hosts_total, "host")} in memory` : p.events ? `${done}, ${plural(p.events, "event")}` : done;
}
