// The report before this one, of the same work: the run that the address names, else one that is looked
// for among earlier runs. It comes apart from the page, and nothing of the page waits for it.
import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Api, asProblem, isAbort } from "../../api/client";
import { asReport, type Report } from "../../api/report";
import type { Run, RunRow, Runs } from "../../api/types";
import { count } from "../../model/format";
import { candidates, isSame, workloadOf } from "../../model/suggestions";
import type { ToolUrl } from "../../model/toolurl";
import { startJob } from "../../shell/jobs";

const LISTED = 200; // runs of a page
const LOOKED = 2000; // of the newest ones, at most
const TRIES = 4; // runs that are looked into
const LARGE = 256 * 2 ** 20; // bytes: what is larger is not opened by itself
const AGAIN = 40;
const SLOW_MS = 600;

export interface Before {
  run: string; // "": none
  report: Report | null; // null: not here yet
  asked: boolean; // the address names it
  busy: boolean;
  why: string; // there is none
  denied: boolean; // who came by a share link sees no other runs
  large: RunRow | null; // may be it, but is too large to be opened unasked
  others: readonly RunRow[]; // that can be chosen
}

const NONE: Before = { run: "", report: null, asked: false, busy: true, why: "", denied: false, large: null, others: [] };

const found = new Map<string, Before>(); // for the way back

async function ask(api: Api, params: Record<string, string>, stop: AbortSignal): Promise<Report> {
  for (let i = 0; ; i++) {
    try {
      return asReport(await api.json<Partial<Report>>("report", { tool: "smart_suggestion", ...params }, stop));
    } catch (e) {
      const p = isAbort(e) ? null : asProblem(e);
      if (!p || p.status !== 503 || i >= AGAIN) throw e;
      await new Promise((done) => setTimeout(done, Math.min(5, p.retryAfter ?? 1) * 1000));
      stop.throwIfAborted();
    }
  }
}

/** The newest runs, as far as an earlier one of the same work may be among them; `more`: others were not looked at. */
async function listed(api: Api, enough: (runs: readonly RunRow[]) => boolean, stop: AbortSignal): Promise<{ runs: RunRow[]; more: boolean }> {
  const runs: RunRow[] = [];
  let page = "";
  for (;;) {
    const got = await api.json<Runs>("runs", { limit: LISTED, ...(page && { page }) }, stop);
    runs.push(...got.runs);
    page = got.next ?? "";
    if (!page || runs.length >= LOOKED || got.runs.length === 0 || enough(runs)) return { runs, more: page !== "" || got.cut !== null };
  }
}

async function look(api: Api, s: ToolUrl, now: Report, marker: Record<string, string>, to: Signal<Before>, stop: AbortSignal): Promise<void> {
  const own = await api.json<Run>("run", { run: s.run }, stop);
  const mine = { ...workloadOf(now), hosts: own.hosts.length };
  const fits = (runs: readonly RunRow[]): RunRow[] => candidates(runs, s.run, own.captured_ms, mine);
  const list = await listed(api, (runs) => s.base !== "" || own.captured_ms === null || fits(runs).length > 0, stop);
  const ready = list.runs.filter((r) => r.state === "ready" && r.run !== s.run).slice(0, LISTED);
  if (s.base) {
    to.value = { ...NONE, run: s.base, asked: true, others: ready };
    to.value = { ...to.peek(), report: await ask(api, { run: s.base, ...marker }, stop), busy: false };
    return;
  }
  to.value = { ...NONE, others: ready };
  const all = fits(list.runs);
  const small = all.filter((r) => r.bytes <= LARGE).slice(0, TRIES);
  let failed = 0;
  for (const r of small) {
    const report = await ask(api, { run: r.run, ...marker }, stop).catch((e: unknown) => {
      if (isAbort(e)) throw e;
      failed++;
      return null;
    });
    if (!report || !isSame(mine, workloadOf(report), s.run, r.run)) continue;
    to.value = { ...NONE, run: r.run, report, busy: false, others: ready.includes(r) ? ready : [...ready, r] };
    return;
  }
  const looked = small.length - failed;
  const why = own.captured_ms === null ? "When this run was captured is not known." : all.length === 0 ? `${list.more ? `Among the newest ${count(list.runs.length)} runs is none` : "There is no earlier run"} of as many hosts that may have done the same${list.more ? " before" : ""}.` : looked > 0 ? `${looked === 1 ? "The earlier run" : `Of ${looked} earlier runs`} of as many hosts ${looked === 1 ? "ran other programs, or on another device." : "none ran the same programs on the same device."}` : "";
  to.value = { ...NONE, busy: false, why, large: all.find((r) => r.bytes > LARGE) ?? null, others: ready };
}

export function useBefore(root: string, s: ToolUrl, now: Report): Before {
  const state = useSignal<Before>(NONE);
  const key = [root, s.run, s.base, s.marker].join("\0");
  // On the way to another run the page shows the report of the last one until its own is there.
  const last = useRef({ run: s.run, now });
  const stale = last.current.run !== s.run && last.current.now === now;
  if (!stale) last.current = { run: s.run, now };
  useEffect(() => {
    if (stale) {
      state.value = NONE;
      return undefined;
    }
    const kept = found.get(key);
    if (kept) {
      state.value = kept;
      return undefined;
    }
    const abort = new AbortController();
    let end = (): void => undefined;
    state.value = NONE;
    const slow = setTimeout(() => {
      end = startJob("The report before", s.base || s.run, useless, () => {
        abort.abort();
        state.value = { ...state.peek(), busy: false, why: "You ended the search." };
        end();
      });
    }, SLOW_MS);
    const done = (): void => (clearTimeout(slow), end());
    look(new Api(root), s, now, s.marker ? { step_marker: s.marker } : {}, state, abort.signal).then(
      () => (found.set(key, state.peek()), done()),
      (e: unknown) => {
        done();
        const denied = [401, 403, 404].includes(asProblem(e).status) && state.peek().others.length === 0;
        if (!isAbort(e)) state.value = { ...state.peek(), busy: false, denied, why: `${s.base ? "Its report" : "Earlier reports"} cannot be read: ${asProblem(e).message}` };
      },
    );
    return () => (abort.abort(), done());
  }, [key, now, stale]);
  return state.value;
}

const useless = { value: null, peek: () => null } as unknown as Signal<null>; // how far the load of others is is not asked
