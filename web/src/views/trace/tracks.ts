// Which planes and lines there are: a page of them at first, more or others when they are asked for.
// Asks again while the profile is loading.
import { signal } from "@preact/signals";
import { asProblem, isAbort, type Api, type Problem } from "../../api/client";
import { watch } from "../../api/events";
import type { Plane, Progress, Tracks } from "../../api/types";
import { formatRows } from "../../model/url";

const FIRST_PROGRESS = 300; // ms without an answer before numbers are asked for
const EVERY = 400;
const TOLD = 1000; // where the server says itself how far it is
const SOON = 80; // the first planes of a large profile are there in a moment
const PAGE = 2000; // rows
const MOST = 10_000; // that the server gives at once
const TYPING = 200; // ms

/** The rows of b behind those of a; each line is there once. */
export function mergePlanes(a: readonly Plane[], b: readonly Plane[]): Plane[] {
  const byPlane = new Map(a.map((p) => [p.plane, p]));
  for (const p of b) {
    const had = byPlane.get(p.plane);
    if (!had) byPlane.set(p.plane, p);
    else {
      const lines = new Set(had.lines.map((l) => l.line));
      const more = p.lines.filter((l) => !lines.has(l.line));
      if (more.length) byPlane.set(p.plane, { ...had, lines: [...had.lines, ...more] });
    }
  }
  return [...byPlane.values()];
}

export class TracksLoader {
  /** What is shown. */
  readonly tracks = signal<Tracks | null>(null);
  readonly progress = signal<Progress | null>(null);
  readonly problem = signal<Problem | null>(null);
  readonly find = signal(""); // names of rows that are looked for
  readonly busy = signal(false); // more rows are on their way
  private abort = new AbortController();
  private asked = 0;
  private rows = PAGE; // so many are wanted
  private timer: ReturnType<typeof setTimeout> | undefined;
  private extra: Plane[] = []; // lines that were asked for by number
  private unwatch: (() => void) | null = null;
  private toldAt = -Infinity; // when the server last said how far it is
  private made: Plane[] | null = null; // derived lines, once they were asked for

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
    this.unwatch?.();
    this.unwatch = null;
    this.abort.abort();
  }

  /** Only rows whose plane or line is called so; "" is all. */
  setFind(text: string, now = false): void {
    if (text === this.find.peek()) return;
    this.find.value = text;
    this.rows = PAGE;
    if (!this.tracks.peek()) return;
    this.stop();
    this.abort = new AbortController();
    this.timer = setTimeout(() => void this.ask(), now ? 0 : TYPING);
  }

  /** The rows behind those that are shown. */
  async more(): Promise<void> {
    const have = this.tracks.peek();
    if (!have?.next || this.busy.peek()) return;
    this.rows += PAGE;
    this.busy.value = true;
    try {
      const got = await this.api.json<Tracks>("tracks", { ...this.wanted(), limit: PAGE, page: have.next }, this.abort.signal);
      if (this.tracks.peek() === have)
        this.show({ ...got, rows: (have.rows ?? 0) + (got.rows ?? 0), planes: mergePlanes(have.planes, got.planes) });
    } catch (e) {
      if (!isAbort(e)) this.problem.value = asProblem(e);
    } finally {
      this.busy.value = false;
    }
  }

  /** All rows, of so many as are given at once. */
  async all(): Promise<void> {
    for (let have = this.tracks.peek(); have?.next && (have.rows ?? 0) < MOST; ) {
      await this.more();
      const now = this.tracks.peek();
      if (now === have) return; // they did not come
      have = now;
    }
  }

  /** Sees to it that the line has a row, wherever it is in the order. */
  async ensure(lines: readonly number[]): Promise<void> {
    const have = this.tracks.peek();
    if (!have || have.next == null) return; // all that match are there
    const shown = new Set(have.planes.flatMap((p) => p.lines.map((l) => l.line)));
    const missing = lines.filter((l) => !shown.has(l));
    if (missing.length === 0) return;
    try {
      const got = await this.api.json<Tracks>("tracks", { ...this.who, rows: formatRows(missing) }, this.abort.signal);
      this.extra = mergePlanes(this.extra, got.planes);
      const now = this.tracks.peek();
      if (now && this.find.peek() === "") this.show(now);
    } catch (e) {
      if (!isAbort(e)) this.problem.value = asProblem(e);
    }
  }

  /** The lines that no file holds. Making them takes the server a moment: not to be asked for at first. */
  async derive(): Promise<void> {
    if (this.made) return;
    this.made = [];
    try {
      const got = await this.api.json<Tracks>("tracks", { ...this.who, derived: "only", limit: MOST }, this.abort.signal);
      this.made = got.planes;
      const now = this.tracks.peek();
      if (now && got.planes.length) this.show(now);
    } catch (e) {
      // They are an extra: the recorded lines are there.
      if (isAbort(e) || asProblem(e).status === 503) this.made = null;
    }
  }

  private wanted(): Record<string, string> {
    const q = this.find.peek().trim();
    return q ? { ...this.who, q, ...(this.made?.length ? { derived: "1" } : {}) } : { ...this.who };
  }

  private show(t: Tracks): void {
    let planes = t.planes;
    if (this.find.peek() === "") {
      planes = mergePlanes(planes, this.extra);
      const shown = new Set(planes.map((p) => p.plane));
      planes = mergePlanes(planes, (this.made ?? []).filter((p) => shown.has(p.plane)));
    }
    this.tracks.value = { ...t, planes };
    this.changed();
  }

  private async ask(): Promise<void> {
    const { signal: stopped } = this.abort;
    const watching = setTimeout(() => this.watch(), FIRST_PROGRESS);
    const began = performance.now();
    const find = this.find.peek();
    try {
      const limit = this.rows > PAGE ? { limit: Math.min(MOST, this.rows) } : {};
      const got = await this.api.json<Tracks>("tracks", { ...this.wanted(), ...limit }, stopped);
      const old = this.tracks.peek();
      const moved = !old || find !== "" || old.events !== got.events || old.planes_done !== got.planes_done ||
        old.loading !== got.loading || old.rows_total !== got.rows_total;
      this.problem.value = null;
      if (moved) this.show(got);
      else if (got.loading) this.tracks.value = { ...got, planes: old.planes };
      this.asked++;
      // An answer that takes long, with a million planes, is not asked for all the time.
      const told = performance.now() - this.toldAt < 2 * TOLD;
      const pause = Math.max(told ? TOLD : Math.min(EVERY, SOON * this.asked), 2 * (performance.now() - began));
      if (got.loading) {
        this.timer = setTimeout(() => void this.ask(), pause);
        this.watch();
      } else {
        this.unwatch?.();
        this.unwatch = null;
      }
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

  /** How far the load is: before the first answer, which needs the file's index, and between later ones. */
  private watch(): void {
    if (this.unwatch) return;
    const took = (p: Progress): void => {
      const t = this.tracks.peek();
      if (!t) this.progress.value = p;
      else if (t.loading && p.bytes_done > t.bytes_done) this.tracks.value = { ...t, bytes_done: p.bytes_done };
      // More planes, or all: what is shown is old.
      if (t?.loading && (p.planes_done !== t.planes_done || p.state === "ready")) {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => void this.ask(), SOON);
      }
    };
    const progress = (data: string): void => {
      this.toldAt = performance.now();
      took(JSON.parse(data) as Progress);
    };
    const ask = (): void => {
      this.api.json<Progress>("progress", this.who, this.abort.signal).then(took, () => {}); // tracks says what is wrong
    };
    this.unwatch = watch(this.api.url("events", this.who), { progress, problem: () => {} }, ask, EVERY);
  }
}
