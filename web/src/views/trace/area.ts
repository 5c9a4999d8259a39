// The chosen area and what the server adds up in it.
import { signal } from "@preact/signals";
import { asProblem, isAbort, type Api, type Problem } from "../../api/client";
import type { Aggregate } from "../../api/types";
import { parseRows, type Area } from "../../model/url";

const LIMIT = 300; // names; the server sums up the rest in one row

export class AreaSum {
  readonly area = signal<Area | null>(null);
  readonly answer = signal<Aggregate | null>(null);
  readonly problem = signal<Problem | null>(null);
  private abort = new AbortController();

  constructor(private readonly api: Api, private readonly who: { run: string; host: string }) {}

  set(a: Area | null): void {
    this.stop();
    this.area.value = a;
    this.answer.value = null;
    this.problem.value = null;
    if (a) void this.load(a);
  }

  again(): void {
    this.set(this.area.peek());
  }

  stop(): void {
    this.abort.abort();
    this.abort = new AbortController();
  }

  private async load(a: Area): Promise<void> {
    const { signal: stopped } = this.abort;
    try {
      const got = await this.api.json<Aggregate>(
        "aggregate", { ...this.who, t0: a.t0, t1: a.t1, rows: a.rows || undefined, limit: LIMIT }, stopped);
      this.answer.value = got;
      if (got.loading) setTimeout(() => stopped.aborted || void this.load(a), 1000);
    } catch (e) {
      if (!isAbort(e)) this.problem.value = asProblem(e);
    }
  }
}

export function sameArea(a: Area | null, b: Area | null): boolean {
  return a === b || (a !== null && b !== null && a.t0 === b.t0 && a.t1 === b.t1 && a.rows === b.rows);
}

/** null: all. */
export function linesOf(a: Area): ReadonlySet<number> | null {
  return a.rows ? new Set(parseRows(a.rows)) : null;
}
