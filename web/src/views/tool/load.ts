// The report that the address asks for: fetched, kept for the way back, asked again while the server
// is still busy with the profile.
import { useSignal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Api, asProblem, isAbort, type Problem } from "../../api/client";
import type { Params } from "../../api/base";
import { asReport, type Report } from "../../api/report";
import type { Progress } from "../../api/types";

const KEPT = 12;
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
  progress: Signal<Progress | null>; // while the profile itself is being read
  retry: () => void;
}

const LOOK_MS = 700;
const RETRIES = 40;

export function useReport(api: Api, params: Params): Loading {
  const report = useSignal<Report | null>(null);
  const problem = useSignal<Problem | null>(null);
  const busy = useSignal(true);
  const progress = useSignal<Progress | null>(null);
  const turn = useSignal(0);
  const key = api.url("report", params);

  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let tries = 0;
    busy.value = true;
    problem.value = null;
    const old = kept.get(key);
    if (old) report.value = old;
    else if (report.peek() && report.peek()!.tool !== params["tool"]) report.value = null;

    const ask = (): void => {
      api.json<Partial<Report>>("report", params, abort.signal).then(
        (got) => {
          const full = asReport(got);
          keep(key, full);
          report.value = full;
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

    const host = ((params["host"] as readonly string[] | undefined) ?? [])[0];
    const look = setInterval(() => {
      if (!busy.peek()) return clearInterval(look);
      if (!host) return undefined;
      api.json<Progress>("progress", { run: String(params["run"]), host }, abort.signal).then(
        (p) => (progress.value = p.state === "ready" ? null : p),
        () => undefined, // the report itself will say what is wrong
      );
      return undefined;
    }, LOOK_MS);
    return () => {
      clearInterval(look);
      clearTimeout(timer);
      abort.abort();
    };
  }, [key, turn.value]);

  return { report, problem, busy, progress, retry: () => turn.value++ };
}
