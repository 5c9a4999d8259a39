// Compiled programs beside each other: two compilations buffer by buffer, and the peaks of all.
import { useMemo } from "preact/hooks";
import { Api } from "../../api/client";
import type { Report } from "../../api/report";
import { bufferTable, buffersOf, matchOps, moduleBase } from "../../model/compare";
import { runTitle } from "../../model/runname";
import type { ToolUrl } from "../../model/toolurl";
import { asNumber, show, signed } from "../../model/units";
import { Icon } from "../../widgets/icon";
import { ProblemPanel } from "../../widgets/problem";
import { Loading } from "../../widgets/shell";
import { useReport } from "./load";
import { otherProgram, programsOf } from "./modules";
import { SeriesPart, TablePart, type PartProps } from "./parts";
import { set, setArg } from "./state";

const ROWS = 2000;

const valueOf = (r: Report, id: string): number => asNumber(r.metrics.find((m) => m.id === id)?.value);

export function BaseChoice({ report, s }: { report: Report; s: ToolUrl }) {
  const programs = programsOf(report);
  if (programs.length < 2) return null;
  return (
    <label class="choice">Compared with
      <select value={s.args["than"] ?? ""} onChange={(e) => setArg("than", e.currentTarget.value)}>
        <option value="">none</option>
        {programs.map((p) => <option key={p.id} value={p.id}>{p.label}</option>)}
      </select>
    </label>
  );
}

export function BufferDiff(p: PartProps) {
  const than = p.s.args["than"];
  const twin = p.base?.report ? twinOf(p.report, p.s, p.base.report) : null;
  return (
    <>
      {than && <Diff {...p} run={p.s.run} host={p.s.hosts} program={than} id="diff" title="Buffers of two programs" told="the other program" />}
      {p.base && twin && <Diff {...p} run={p.base.run} host={[]} program={twin.id} id="base_diff" title={`Buffers against ${runTitle(p.base.run)}`} told={`${twin.name} of ${runTitle(p.base.run)}`} />}
    </>
  );
}

/** Of another run the program that is called as this one, be it compiled anew; none is: the one that ran longest. */
function twinOf(report: Report, s: ToolUrl, there: Report): { id: string; name: string } | null {
  const now = programsOf(report);
  const mine = now.find((p) => p.id === (s.args["program_id"] || s.program)) ?? now[0];
  const all = programsOf(there);
  const twin = all.find((p) => moduleBase(p.name) === moduleBase(mine?.name ?? "")) ?? all[0];
  return twin ? { id: twin.id, name: moduleBase(twin.name) } : null;
}

function Diff({ run, host, program, id, title, told, ...p }: PartProps & { run: string; host: readonly string[]; program: string; id: string; title: string; told: string }) {
  const api = useMemo(() => new Api(p.root), [p.root]);
  const space = p.s.args["memory_space"];
  const other = useReport(api, { run, tool: "memory_viewer", host, limit: ROWS, program_id: program, ...(space ? { memory_space: space } : {}) });
  const r = other.report.value;
  const table = useMemo(() => r && bufferTable(matchOps(buffersOf(r), buffersOf(p.report))), [r, p.report]);
  if (other.problem.value) return <ProblemPanel small problem={other.problem.value} retry={other.retry} />;
  if (!r || !table) return <Loading what="Reading the other program's buffers…" />;
  const [a, b] = [valueOf(r, "program_peak"), valueOf(p.report, "program_peak")];
  const note = Number.isNaN(a) || Number.isNaN(b) ? "One of the two has no buffers in the profile." : `A, ${told}, needs ${show(a, "bytes")}; B, this one, ${show(b, "bytes")} (${signed(b - a, "bytes")}).`;
  return <TablePart {...p} t={{ ...table, id, title, note }} first={false} />;
}

export function AllPrograms(p: PartProps) {
  const all = p.report.series.find((x) => x.id === "programs");
  if (all) return <SeriesPart series={all} pick={{ at: null, point: (i) => openProgram(p, String(all.points[i]?.[0])), word: "this program's buffers" }} {...p} />;
  if (programsOf(p.report).length < 2) return null;
  return <p class="part"><button type="button" class="button" onClick={() => setArg("programs", "all")}><Icon name="layers" /> Peaks of all programs</button></p>;
}

/** By its name, of which a chart has the first part. */
function openProgram({ report, s }: PartProps, name: string): void {
  const t = report.tables.find((x) => x.id === "programs");
  const [module, id] = ["module", "program_id"].map((c) => t?.columns.findIndex((x) => x.id === c) ?? -1) as [number, number];
  const row = t?.rows.find((r) => String(r[module]) === name) ?? t?.rows.find((r) => String(r[module]).startsWith(name));
  if (row && row[id] !== null) set(otherProgram(s, String(row[id])));
}
