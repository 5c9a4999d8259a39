// Figures of runs that somebody asks for, one after the other: the server keeps them.
import { signal } from "@preact/signals";
import { Api, asProblem, isAbort } from "../api/client";
import type { Params } from "../api/base";
import type { Progress } from "../api/types";
import { follow, startJob } from "./jobs";

const AT_ONCE = 2;
const TRIES = 60;

export interface Wanted {
  run: string;
  hosts: number;
}

/** Counts up whenever something below has changed. */
const version = signal(0);
const state = new Map<string, "waiting" | string>(); // else: why it failed
const queue: { api: Api; w: Wanted; done: () => void }[] = [];
let running = 0;

const keyOf = (api: Api, run: string): string => `${api.root}\0${run}`;

export function figureState(api: Api, run: string): { waiting: boolean; problem: string } {
  void version.value;
  const s = state.get(keyOf(api, run));
  return { waiting: s === "waiting", problem: s && s !== "waiting" ? s : "" };
}

/** Asks again while the server is busy with the profile, for a bounded time. */
async function patient(api: Api, params: Params, stop: AbortSignal): Promise<void> {
  for (let i = 0; ; i++) {
    try {
      await api.json("report", params, stop);
      return;
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
    await patient(api, { run: w.run, tool: "run_facts" }, abort.signal);
    state.delete(key);
  } catch (e) {
    if (isAbort(e)) state.delete(key);
    else state.set(key, asProblem(e).message);
  } finally {
    endJob();
    unfollow();
    version.value++;
  }
}

function pump(): void {
  while (running < AT_ONCE && queue.length > 0) {
    const { api, w, done } = queue.shift()!;
    running++;
    void read(api, w).finally(() => {
      running--;
      done();
      pump();
    });
  }
}

/** `done` is called after each. */
export function wantFigures(api: Api, list: readonly Wanted[], done: () => void): void {
  for (const w of list) {
    if (state.get(keyOf(api, w.run)) === "waiting") continue;
    state.set(keyOf(api, w.run), "waiting");
    queue.push({ api, w, done });
  }
  version.value++;
  pump();
}

/** Those that were not begun are not begun. */
export function wantNoMore(): void {
  for (const { api, w } of queue.splice(0)) state.delete(keyOf(api, w.run));
  version.value++;
}
