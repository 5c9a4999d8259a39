// Search over the whole profile: the server finds and counts, the page lights up what is in sight.
import { signal } from "@preact/signals";
import { asProblem, isAbort, type Api, type Problem } from "../../api/client";
import { big } from "../../api/json";
import type { Hit, SearchAnswer } from "../../api/types";
import { plainOp } from "../../model/near";

const LIMIT = 200;
const SAME = 50; // names that hold an op's name are looked at

export class Search {
  readonly text = signal("");
  readonly answer = signal<SearchAnswer | null>(null);
  readonly busy = signal(false);
  readonly problem = signal<Problem | null>(null);
  private abort = new AbortController();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private lines: { derived?: string } = {}; // in which the hits are: recorded ones, or derived ones, too

  constructor(private readonly api: Api, private readonly who: { run: string; host: string }) {}

  set(text: string, now = false): void {
    const wanted = text.trim() !== "";
    if (text === this.text.peek() && (this.answer.peek() || this.busy.peek() || !wanted)) return;
    this.text.value = text;
    this.stop();
    this.problem.value = null;
    this.busy.value = wanted;
    if (!wanted) this.answer.value = null;
    else this.timer = setTimeout(() => void this.ask(), now ? 0 : 160);
  }

  again(): void {
    this.stop();
    this.problem.value = null;
    if (this.text.peek().trim() !== "") void this.ask();
  }

  stop(): void {
    clearTimeout(this.timer);
    this.abort.abort();
    this.abort = new AbortController();
  }

  private async ask(): Promise<void> {
    const { signal: stopped } = this.abort;
    this.busy.value = true;
    try {
      const got = await this.find(stopped);
      this.answer.value = got;
      if (got.loading) this.timer = setTimeout(() => void this.ask(), 1000);
    } catch (e) {
      if (isAbort(e)) return;
      this.answer.value = null;
      this.problem.value = asProblem(e);
    }
    this.busy.value = false;
  }

  /** An op of the framework has events in derived lines only: they are looked through when no other has any. */
  private async find(stopped: AbortSignal): Promise<SearchAnswer> {
    const query = { ...this.who, q: this.text.peek(), limit: LIMIT };
    this.lines = {};
    const got = await this.api.json<SearchAnswer>("search", query, stopped);
    if (got.total > 0 || got.loading) return got;
    try {
      const made = await this.api.json<SearchAnswer>("search", { ...query, derived: "1" }, stopped);
      this.lines = { derived: "1" };
      return made;
    } catch (e) {
      if (isAbort(e)) throw e;
      return got; // from some profiles no lines are derived
    }
  }

  /** The next list of hits, behind the last one shown. */
  async more(): Promise<void> {
    const have = this.answer.peek();
    const last = have?.hits[have.hits.length - 1];
    if (!have || !last || !have.more) return;
    const got = await this.api.json<SearchAnswer>("search", {
      ...this.who, ...this.lines, q: have.q, limit: LIMIT, after: big(last.begin_ps), after_id: big(last.id), dir: "next",
    }, this.abort.signal);
    if (this.answer.peek() === have) this.answer.value = { ...have, hits: [...have.hits, ...got.hits], more: got.more };
  }

  /** The hit after (before) a place; at the end it goes on from the other end. */
  async step(dir: 1 | -1, after: bigint, id: string | null, ends: { first: bigint; last: bigint }): Promise<Hit | null> {
    const q = this.text.peek();
    if (q.trim() === "") return null;
    const ask = async (from: bigint, fromId: string | undefined): Promise<Hit | undefined> =>
      (await this.api.json<SearchAnswer>("search", {
        ...this.who, ...this.lines, q, limit: 1, after: from, after_id: fromId, dir: dir > 0 ? "next" : "prev",
      }, this.abort.signal)).hits[0];
    return (await ask(after, id ?? undefined)) ?? (await ask(dir > 0 ? ends.first - 1n : ends.last + 1n, undefined)) ?? null;
  }

  /** The first event of a line after a time, or of all when none is. */
  async firstOn(line: number, after: bigint): Promise<Hit | undefined> {
    const ask = async (from: Record<string, bigint>): Promise<Hit | undefined> =>
      (await this.api.json<SearchAnswer>("search", { ...this.who, q: "dur>=0ps", rows: line, limit: 1, ...from })).hits[0];
    return (await ask({ after })) ?? (await ask({}));
  }

  /** The run of an op on a line that is closest before or after an event, else on its other side. */
  async nearest(line: number, op: string, at: { begin: bigint; id: string }, dir: 1 | -1): Promise<Hit | undefined> {
    const ask = async (way: 1 | -1): Promise<Hit | undefined> => {
      const { hits } = await this.api.json<SearchAnswer>("search", {
        ...this.who, q: `name:"${op.replace(/"/g, "")}"`, rows: line, limit: SAME, after: at.begin, after_id: at.id, dir: way > 0 ? "next" : "prev",
      }, this.abort.signal);
      return hits.find((h) => plainOp(h.name) === op);
    };
    return (await ask(dir)) ?? (await ask(dir > 0 ? -1 : 1));
  }

  /** 1 for the first of the hits listed, 0 when it is not among them. */
  place(id: string): number {
    return (this.answer.value?.hits.findIndex((h) => String(h.id) === id) ?? -1) + 1;
  }
}
