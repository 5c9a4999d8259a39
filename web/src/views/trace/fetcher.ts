// Asks the server for what the pixels need: the lines in sight, the window in view and some more
// at both sides. One request at a time; one that has become useless is aborted.
import { signal } from "@preact/signals";
import { asProblem, isAbort, type Api, type Problem } from "../../api/client";
import { decodeWindow, type Window } from "../../api/window";
import type { Kind, Name, Names } from "../../model/names";
import type { Slabs } from "../../model/slabs";
import { formatRows } from "../../model/url";
import { endOf, type Range, type View } from "../../model/view";

const MARGIN = 0.5; // of the view, at each side
const MAX_PX = 16384;
const MAX_BYTES = 524288;
const MIN_AGE = 80; // ms before a request is given up for a better one

export interface Need {
  view: View;
  lines: number[]; // in sight, with events
  pixels: number; // device pixels of the view
  session: Range;
}

/** What the tracks say of a line. */
export interface LineFacts {
  kind: Kind;
  settled: boolean; // loaded: its events do not change any more
  extent: Range; // where its events are
}

interface Flight extends Range {
  lines: ReadonlySet<number>;
  psPerPx: number;
  began: number;
  abort: AbortController;
}

function widen(need: Need): Range {
  const { view, session } = need;
  const margin = BigInt(Math.round(view.span * MARGIN));
  const t0 = view.t0 - margin;
  const t1 = endOf(view) + margin;
  return { t0: t0 > session.t0 ? t0 : session.t0, t1: t1 < session.t1 ? t1 : session.t1 };
}

/** Lines that the answer is about; where rows were left out at its end the rest is asked for next. */
function answered(w: Window, lines: number[]): number[] {
  if (w.rowsCut === 0) return lines;
  const last = w.lanes.reduce((max, lane) => Math.max(max, lane.line), -1);
  const whole = lines.filter((line) => line < last);
  return whole.length ? whole : lines.slice(0, 1);
}

export class Fetcher {
  readonly problem = signal<Problem | null>(null);
  readonly version = signal(0); // counts answers taken in
  readonly lastMs = signal(0);
  readonly lastBytes = signal(0);
  private need: Need | null = null;
  private flight: Flight | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private stale = false;
  private served: { need: Need; lines: Set<number> } | null = null; // guards against asking in a circle

  constructor(
    private readonly api: Api,
    private readonly who: { run: string; host: string },
    private readonly slabs: Slabs,
    private readonly names: Names,
    private readonly lineOf: (line: number) => LineFacts,
  ) {}

  want(need: Need): void {
    this.need = need;
    this.consider();
  }

  /** More of the profile is loaded: what was answered before is worth asking again. */
  refresh(): void {
    this.stale = true;
    this.served = null;
    this.consider();
  }

  retry(): void {
    this.problem.value = null;
    this.consider();
  }

  stop(): void {
    clearTimeout(this.timer);
    this.flight?.abort.abort();
    this.flight = null;
    this.need = null;
  }

  private later(ms: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.consider(), ms);
  }

  private missing(need: Need): number[] {
    const psPerPx = need.view.span / need.pixels;
    const served = this.served?.need === need ? this.served.lines : null;
    return need.lines.filter(
      (line) => !served?.has(line) && !this.slabs.has(line, need.view, psPerPx, this.lineOf(line).extent, !this.stale));
  }

  private consider(): void {
    const need = this.need;
    if (!need || this.problem.peek() || need.session.t0 >= need.session.t1) return;
    const lines = this.missing(need);
    if (lines.length === 0) {
      this.stale = false;
      return;
    }
    if (this.flight) {
      if (this.useful(this.flight, need, lines)) return;
      const age = performance.now() - this.flight.began;
      if (age < MIN_AGE) return this.later(MIN_AGE - age);
      this.flight.abort.abort();
    }
    void this.send(need, lines);
  }

  private useful(f: Flight, need: Need, lines: number[]): boolean {
    const { view, session } = need;
    const end = endOf(view);
    return (
      (f.t0 <= view.t0 || f.t0 === session.t0) && (f.t1 >= end || f.t1 === session.t1) &&
      f.psPerPx <= (view.span / need.pixels) * 1.02 && lines.every((l) => f.lines.has(l))
    );
  }

  private async send(need: Need, lines: number[]): Promise<void> {
    const range = widen(need);
    if (range.t0 >= range.t1) return;
    const length = Number(range.t1 - range.t0);
    const px = Math.min(MAX_PX, Math.max(1, Math.ceil((need.pixels * length) / need.view.span)));
    const flight: Flight = {
      ...range, lines: new Set(lines), psPerPx: length / px, began: performance.now(), abort: new AbortController(),
    };
    this.flight = flight;
    this.stale = false;
    try {
      const body = await this.api.bytes(
        "window",
        { run: this.who.run, host: this.who.host, t0: range.t0, t1: range.t1, px, rows: formatRows(lines), max_bytes: MAX_BYTES },
        flight.abort.signal,
      );
      this.take(body, need, lines);
      this.lastMs.value = performance.now() - flight.began;
      this.lastBytes.value = body.length;
    } catch (e) {
      if (isAbort(e) || this.flight !== flight) return;
      this.fail(asProblem(e));
    } finally {
      if (this.flight === flight) {
        this.flight = null;
        this.consider();
      }
    }
  }

  private take(body: Uint8Array, need: Need, asked: number[]): void {
    const w = decodeWindow(body);
    const lines = answered(w, asked);
    const before = this.served?.need === need ? this.served.lines : [];
    this.served = { need, lines: new Set([...before, ...lines]) };
    const resolved = new Map<Kind, Name[]>();
    this.slabs.add(w, lines, (line) => {
      const { kind } = this.lineOf(line);
      let list = resolved.get(kind);
      if (!list) resolved.set(kind, (list = w.names.map((text) => this.names.get(text, kind))));
      return list;
    }, (line) => this.lineOf(line).settled);
    this.version.value++;
  }

  private fail(p: Problem): void {
    this.problem.value = p;
    if (p.status === 503 || p.status === 429)
      this.timer = setTimeout(() => this.retry(), Math.min(30, p.retryAfter ?? 2) * 1000);
  }
}
