// Which compiled program a page is about: the report lists those of the run, the longest first.
import type { Report } from "../../api/report";
import type { ToolUrl } from "../../model/toolurl";
import { asNumber, show } from "../../model/units";
import { set } from "./state";

/** For the server: the program that was asked for, else that of the chosen op. */
export function programArgument(s: ToolUrl): Record<string, string> {
  return s.program && !s.args["program_id"] && !s.args["module_name"] ? { program_id: s.program } : {};
}

/** Those of the run, the longest first. */
export function programsOf(report: Report): { id: string; name: string; label: string }[] {
  const t = report.tables.find((x) => x.id === "modules");
  const at = (id: string): number => t?.columns.findIndex((c) => c.id === id) ?? -1;
  const [name, program, time] = [at("module"), at("program_id"), at("time")];
  if (!t || name < 0 || program < 0) return [];
  return t.rows.map((r) => ({
    id: String(r[program]), name: String(r[name]),
    label: `${String(r[name]).replace(/\(\d+\)$/, "")}${time >= 0 && asNumber(r[time]) > 0 ? `, ${show(r[time], "ps")}` : ""} · ${String(r[program])}`,
  }));
}

/** What the address becomes where another program is looked at. */
export const otherProgram = (s: ToolUrl, id: string): Partial<ToolUrl> => ({ op: "", program: "", args: { ...s.args, program_id: id, module_name: "", node_name: "", w: "" } });

export function ModuleChoice({ report, s }: { report: Report; s: ToolUrl }) {
  const programs = programsOf(report);
  if (programs.length < 2) return null;
  const now = s.args["program_id"] || s.program || programs[0]!.id;
  return (
    <label class="choice">Program
      <select value={now} onChange={(e) => set(otherProgram(s, e.currentTarget.value))}>
        {programs.map((p) => <option key={p.id} value={p.id}>{p.label}</option>)}
      </select>
    </label>
  );
}
