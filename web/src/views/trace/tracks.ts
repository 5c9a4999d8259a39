// Which planes and lines there are; asks again while the profile is loading.
import { signal } from "@preact/signals";
import { asProblem, isAbort, type Api, type Problem } from "../../api/client";
import type { Progress, Tracks } from "../../api/types";

const FIRST_PROGRESS = 300; // ms without an answer before numbers are asked for
const EVERY = 400;
const SOON = 80; // the first planes of a large profile are there in a moment

export class TracksLoader {
  readonly tracks = signal<Tracks | null>(null);
  readonly progress = signal<Progress | null>(null);
  readonly problem = signal<Problem | null>(null);
  private abort = new AbortController();
  private asked = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly api: Api,
    private readonly who: { run: string; host: string },
    private readonly changed: () => void,
  ) {}

  start(): void {
    this.stop();
    this.abort = new AbortController();
    this.problem.value = null;
    void this.ask();
  }

  stop(): void {
    clearTimeout(this.timer);
    this.abort.abort();
  }

  private async ask(): Promise<void> {
    const { signal: stopped } = this.abort;
    const watching = setTimeout(() => void this.watch(stopped), FIRST_PROGRESS);
    const began = performance.now();
    try {
      const got = await this.api.json<Tracks>("tracks", this.who, stopped);
      const old = this.tracks.peek();
      const moved = !old || old.events !== got.events || old.planes_done !== got.planes_done || old.loading !== got.loading;
      if (moved || got.loading) this.tracks.value = got;
      if (moved) this.changed();
      this.asked++;
      // An answer that takes long, with a million planes, is not asked for all the time.
      const pause = Math.max(Math.min(EVERY, SOON * this.asked), 2 * (performance.now() - began));
      if (got.loading) this.timer = setTimeout(() => void this.ask(), pause);
    } catch (e) {
      if (!isAbort(e)) this.fail(asProblem(e), stopped);
    } finally {
      clearTimeout(watching);
      this.progress.value = null;
    }
  }

  private fail(p: Problem, stopped: AbortSignal): void {
    this.problem.value = p;
    if (p.status === 503 && !stopped.aborted)
      this.timer = setTimeout(() => this.start(), Math.min(30, p.retryAfter ?? 2) * 1000);
  }

  /** The first answer needs the file's index: say meanwhile how far that is. */
  private async watch(stopped: AbortSignal): Promise<void> {
    while (!stopped.aborted && !this.tracks.peek() && !this.problem.peek()) {
      try {
        this.progress.value = await this.api.json<Progress>("progress", this.who, stopped);
      } catch {
        return; // the answer to tracks says what is wrong
      }
      await new Promise((done) => setTimeout(done, EVERY));
    }
    this.progress.value = null;
  }
}
