// The program of the graph against another: of the same run, or of the run that all pages are held against.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { Api, asProblem, isAbort, type Problem } from "../../api/client";
import { asReport, type Report, type Table } from "../../api/report";
import { moduleBase } from "../../model/compare";
import { diffInSteps, programOps, runsOf, type Change, type ProgramOp } from "../../model/graphdiff";
import { count } from "../../model/format";
import { runTitle } from "../../model/runname";
import type { ToolUrl } from "../../model/toolurl";
import { useReport } from "./load";
import { programsOf } from "./modules";
import { setArg } from "./state";

const ROWS = 10_000; // an answer; it may hold fewer, as its bytes are bounded
const MOST = 50_000; // ops of a program that are compared

export interface Diff {
  a: ProgramOp[]; // the other program
  b: ProgramOp[];
  changes: Change[];
  scale: number; // from the other's times to this one's
  words: string;
}

export interface Than {
  on: boolean;
  run: string; // where the other program is from
  programs: { id: string; label: string }[];
  than: string; // its id
  unknown: string; // what the address asks for and is not there
  diff: Diff | null;
  problem: Problem | null;
}

async function allOps(api: Api, run: string, hosts: readonly string[], program: string, signal: AbortSignal): Promise<{ ops: ProgramOp[]; total: number }> {
  let whole: Table | undefined;
  for (let skip = 0; skip < MOST; ) {
    const got = asReport(await api.json<Partial<Report>>("report", { run, tool: "graph_viewer", host: hosts, program_id: program, nodes: 1, radius: 0, ops: 1, table: "ops", limit: Math.min(ROWS, MOST - skip), skip }, signal));
    const t = got.tables.find((x) => x.id === "ops");
    if (!t || t.rows.length === 0) break;
    whole = whole ? { ...whole, rows: [...whole.rows, ...t.rows] } : t;
    skip += t.rows.length;
    if (skip >= t.total_rows) break;
  }
  return { ops: programOps(whole), total: whole?.total_rows ?? 0 };
}

/** Between its steps the page goes on. */
async function slowly<T>(steps: Generator<void, T>): Promise<T> {
  for (;;) {
    const at = steps.next();
    if (at.done) return at.value;
    await new Promise((go) => setTimeout(go));
  }
}

/** The one that was asked for, else the one called as this, else the first. */
function otherOf(report: Report, mine: string, other: Report, asked: string, sameRun: boolean): string {
  const list = programsOf(other);
  if (asked && list.some((p) => p.id === asked)) return asked;
  if (sameRun) return "";
  const name = (r: Report, id: string): string => {
    const t = r.tables.find((x) => x.id === "modules");
    const at = (c: string): number => t?.columns.findIndex((x) => x.id === c) ?? -1;
    return moduleBase(String(t?.rows.find((x) => String(x[at("program_id")]) === id)?.[at("module")] ?? ""));
  };
  return (list.find((p) => name(other, p.id) === name(report, mine)) ?? list[0])?.id ?? "";
}

export function useThan(root: string, s: ToolUrl, report: Report, program: string): Than {
  const api = useMemo(() => new Api(root), [root]);
  const sameRun = s.base === "" || s.base === s.run;
  const there = useReport(api, sameRun ? null : { run: s.base, tool: "graph_viewer", nodes: 1, radius: 0, table: "modules" });
  const other = sameRun ? report : there.report.value;
  const than = other ? otherOf(report, program, other, s.args["than"] ?? "", sameRun) : "";
  const run = sameRun ? s.run : s.base;
  const on = than !== "" && program !== "" && !(sameRun && than === program);
  const diff = useSignal<Diff | null>(null);
  const problem = useSignal<Problem | null>(null);
  useEffect(() => {
    diff.value = null;
    problem.value = null;
    if (!on || !other) return undefined;
    const abort = new AbortController();
    const hosts = sameRun ? s.hosts : [];
    Promise.all([allOps(api, run, hosts, than, abort.signal), allOps(api, s.run, s.hosts, program, abort.signal)]).then(
      async ([a, b]) => {
        const changes = await slowly(diffInSteps(a.ops, b.ops));
        if (abort.signal.aborted) return;
        const [ra, rb] = [runsOf(other, than), runsOf(report, program)];
        const cut = [a, b].some((x) => x.total > x.ops.length);
        const name = programsOf(other).find((p) => p.id === than)?.label ?? than;
        diff.value = {
          a: a.ops, b: b.ops, changes, scale: ra > 0 && rb > 0 ? rb / ra : 1,
          words: `Against ${name}${sameRun ? "" : ` of ${runTitle(run)}`}.${cut ? ` Of each program only the first ${count(MOST)} ops are compared.` : ""}${ra > 0 && rb > 0 ? ` It ran ${count(ra)} times, this one ${count(rb)}: its times are for as many.` : ""}`,
        };
      },
      (e: unknown) => {
        if (!isAbort(e)) problem.value = asProblem(e);
      },
    );
    return () => abort.abort();
  }, [api, on, run, than, s.run, program, s.hosts.join()]);
  const asked = s.args["than"] ?? "";
  const unknown = other && asked && than !== asked ? asked : "";
  return { on, unknown, run, programs: other ? programsOf(other).filter((p) => !sameRun || p.id !== program) : [], than, diff: diff.value, problem: problem.value ?? (sameRun ? null : there.problem.value) };
}

export function ThanChoice({ s, than }: { s: ToolUrl; than: Than }) {
  const sameRun = than.run === s.run;
  if (than.programs.length === 0 || (!sameRun && than.programs.length < 2)) return null;
  return (
    <label class="choice">Compared with
      <select value={than.than} onChange={(e) => setArg("than", e.currentTarget.value)}>
        {sameRun && <option value="">no other program</option>}
        {than.programs.map((p) => <option key={p.id} value={p.id}>{sameRun ? p.label : `${runTitle(than.run)}: ${p.label}`}</option>)}
      </select>
    </label>
  );
}
