// Figures of runs for their list: what is known, and the queue of those that were asked for.
import { signal } from "@preact/signals";
import { Api, asProblem, isAbort } from "../api/client";
import type { Params } from "../api/base";
import { asReport, type Report } from "../api/report";
import type { Progress } from "../api/types";
import { FigureStore, figuresOf, isComplete, type Figures } from "../model/figures";
import { follow, startJob } from "./jobs";

const AT_ONCE = 2;
const TRIES = 60;

export interface Wanted {
  run: string;
  bytes: number;
  hosts: number;
}

function storage(): Storage | null {
  try {
    return window.localStorage;
  } catch {
    return null;
  }
}

const store = new FigureStore(storage());
/** Counts up whenever something below has changed. */
export const figuresVersion = signal(0);
const state = new Map<string, "waiting" | string>(); // else: why it failed
const queue: { api: Api; w: Wanted }[] = [];
let running = 0;

const keyOf = (api: Api, run: string): string => `${api.root}\0${run}`;

export function figuresFor(api: Api, w: Wanted): { figures: Figures | null; waiting: boolean; problem: string } {
  void figuresVersion.value;
  const s = state.get(keyOf(api, w.run));
  return { figures: store.get(api.root, w.run, w.bytes), waiting: s === "waiting", problem: s && s !== "waiting" ? s : "" };
}

export function remember(root: string, run: string, bytes: number, overview: Report, memory?: Report | null): void {
  store.put(root, run, bytes, figuresOf(overview, memory));
  figuresVersion.value++;
}

/** Asks again while the server is busy with the profile, for a bounded time. */
async function patient(api: Api, params: Params, stop: AbortSignal): Promise<Report> {
  for (let i = 0; ; i++) {
    try {
      return asReport(await api.json<Partial<Report>>("report", params, stop));
    } catch (e) {
      const p = isAbort(e) ? null : asProblem(e);
      if (p?.status !== 503 || i >= TRIES) throw e;
      await new Promise((done) => setTimeout(done, Math.min(5, p.retryAfter ?? 1) * 1000));
    }
  }
}

async function read(api: Api, w: Wanted): Promise<void> {
  const abort = new AbortController();
  const progress = signal<Progress | null>(null);
  const endJob = startJob("Figures of", w.run, progress, () => abort.abort());
  const unfollow = follow(api, w.run, "", w.hosts, progress);
  const key = keyOf(api, w.run);
  try {
    const overview = await patient(api, { run: w.run, tool: "overview_page", limit: 1 }, abort.signal);
    const memory = await patient(api, { run: w.run, tool: "memory_profile", limit: 1 }, abort.signal).catch((e: unknown) => {
      if (isAbort(e)) throw e;
      return null;
    });
    state.delete(key);
    remember(api.root, w.run, w.bytes, overview, memory);
  } catch (e) {
    if (isAbort(e)) state.delete(key);
    else state.set(key, asProblem(e).message);
  } finally {
    endJob();
    unfollow();
    figuresVersion.value++;
  }
}

function pump(): void {
  while (running < AT_ONCE && queue.length > 0) {
    const { api, w } = queue.shift()!;
    running++;
    void read(api, w).finally(() => {
      running--;
      pump();
    });
  }
}

export function wantFigures(api: Api, list: readonly Wanted[]): void {
  for (const w of list) {
    const known = store.get(api.root, w.run, w.bytes);
    if (state.get(keyOf(api, w.run)) === "waiting" || (known && isComplete(known))) continue;
    state.set(keyOf(api, w.run), "waiting");
    queue.push({ api, w });
  }
  figuresVersion.value++;
  pump();
}

/** Those that were not begun are not begun. */
export function wantNoMore(): void {
  for (const { api, w } of queue.splice(0)) state.delete(keyOf(api, w.run));
  figuresVersion.value++;
}
