// The chosen event: at once where it is, then, from the server, all that is known about it.
import { batch, signal } from "@preact/signals";
import { asProblem, isAbort, type Api, type Problem } from "../../api/client";
import { big } from "../../api/json";
import type { EventDetails } from "../../api/types";

/** Where an event is drawn. */
export interface Mark {
  line: number;
  lane: number;
  id: string;
  begin: bigint;
  end: bigint;
}

export class Chosen {
  readonly id = signal(""); // "": none
  readonly mark = signal<Mark | null>(null);
  readonly details = signal<EventDetails | null>(null);
  readonly problem = signal<Problem | null>(null);
  private abort = new AbortController();

  constructor(private readonly api: Api, private readonly who: { run: string; host: string }) {}

  clear(): void {
    this.set("", null);
  }

  /** True once the details are there. */
  async choose(id: string, mark: Mark | null): Promise<boolean> {
    this.set(id, mark);
    try {
      await this.load({ id });
      return true;
    } catch (e) {
      if (!isAbort(e)) this.problem.value = asProblem(e);
      return false;
    }
  }

  again(): Promise<boolean> {
    return this.choose(this.id.peek(), this.mark.peek());
  }

  /** The neighbour on the line. Throws a Problem when there is none; false when something else was chosen meanwhile. */
  async step(dir: 1 | -1): Promise<boolean> {
    this.stop();
    try {
      await this.load({ id: this.id.peek(), step: dir > 0 ? "next" : "prev" });
      return true;
    } catch (e) {
      if (isAbort(e)) return false;
      throw e;
    }
  }

  stop(): void {
    this.abort.abort();
    this.abort = new AbortController();
  }

  private set(id: string, mark: Mark | null): void {
    this.stop();
    batch(() => {
      this.id.value = id;
      this.mark.value = mark;
      this.details.value = null;
      this.problem.value = null;
    });
  }

  private async load(params: { id: string; step?: "next" | "prev" }): Promise<void> {
    const got = await this.api.json<EventDetails>("event", { ...this.who, ...params }, this.abort.signal);
    const begin = big(got.begin_ps);
    batch(() => {
      this.id.value = String(got.id);
      this.mark.value = { id: String(got.id), line: got.line, lane: got.lane, begin, end: begin + big(got.duration_ps) };
      this.details.value = got;
      this.problem.value = null;
    });
  }
}
