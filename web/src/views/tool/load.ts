// The report that the address asks for: fetched, kept for the way back, asked again while the server
// is still busy with the profile.
import { batch, useSignal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Api, asProblem, isAbort, Problem } from "../../api/client";
import type { Params } from "../../api/base";
import { asReport, type Report } from "../../api/report";
import type { Progress } from "../../api/types";
import { toolOf } from "../../model/tools";
import { follow, startJob } from "../../shell/jobs";

const KEPT = 24;
const kept = new Map<string, Report>();

function keep(key: string, report: Report): void {
  kept.delete(key);
  kept.set(key, report);
  for (const old of kept.keys()) {
    if (kept.size <= KEPT) break;
    kept.delete(old);
  }
}

export interface Loading {
  report: Signal<Report | null>;
  problem: Signal<Problem | null>;
  busy: Signal<boolean>;
  progress: Signal<Progress | null>; // while the profile itself is being read, and that takes a while
  fresh: boolean; // the report is what is asked for now, not what was before
  retry: () => void;
}

const SLOW_MS = 600;
const RETRIES = 40;

/** null: nothing is asked for. */
export function useReport(api: Api, params: Params | null): Loading {
  const report = useSignal<Report | null>(null);
  const of = useSignal(""); // what the report was asked for by
  const problem = useSignal<Problem | null>(null);
  const busy = useSignal(true);
  const progress = useSignal<Progress | null>(null);
  const turn = useSignal(0);
  const key = params ? api.url("report", params) : "";

  useEffect(() => {
    if (!params) {
      report.value = problem.value = progress.value = null;
      busy.value = false;
      return undefined;
    }
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let tries = 0;
    busy.value = true;
    problem.value = null;
    const show = (r: Report): void => batch(() => {
      report.value = r;
      of.value = key;
    });
    const old = kept.get(key);
    if (old) show(old);
    else if (report.peek() && report.peek()!.tool !== params["tool"]) report.value = null;

    const ask = (): void => {
      api.json<Partial<Report>>("report", params, abort.signal).then(
        (got) => {
          const full = asReport(got);
          keep(key, full);
          show(full);
          busy.value = false;
          progress.value = null;
        },
        (e: unknown) => {
          if (isAbort(e)) return;
          const p = asProblem(e);
          if (p.status === 503 && tries++ < RETRIES) {
            timer = setTimeout(ask, Math.min(5, p.retryAfter ?? 1) * 1000);
            return;
          }
          problem.value = p;
          report.value = null;
          busy.value = false;
        },
      );
    };
    ask();

    // What takes a while is in the tray, where it can be ended.
    let told = (): void => undefined;
    const cancel = (): void => {
      abort.abort();
      clearTimeout(timer);
      busy.value = false;
      problem.value = new Problem({ status: 0, title: "Cancelled", detail: "You ended this before the answer was there." });
    };
    const slow = setTimeout(() => {
      if (!busy.peek()) return;
      const run = String(params["run"]);
      const tool = String(params["tool"]);
      const hosts = (params["host"] as readonly string[] | undefined) ?? [];
      const endJob = startJob(toolOf(tool)?.label ?? tool, run, progress, cancel);
      const unfollow = follow(api, run, hosts[0] ?? "", hosts.length, progress);
      const unwatch = busy.subscribe((b) => b || (endJob(), unfollow()));
      told = () => (unwatch(), endJob(), unfollow());
    }, SLOW_MS);
    return () => {
      clearTimeout(slow);
      clearTimeout(timer);
      told();
      abort.abort();
    };
  }, [key, turn.value]);

  return { report, problem, busy, progress, fresh: key !== "" && of.value === key, retry: () => turn.value++ };
}
