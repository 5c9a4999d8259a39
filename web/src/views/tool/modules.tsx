// Which compiled program a page is about: the report lists those of the run, the longest first.
import type { Report } from "../../api/report";
import type { ToolUrl } from "../../model/toolurl";
import { asNumber, show } from "../../model/units";
import { set } from "./state";

/** For the server: the program that was asked for, else that of the chosen op. */
export function programArgument(s: ToolUrl): Record<string, string> {
  return s.program && !s.args["program_id"] && !s.args["module_name"] ? { program_id: s.program } : {};
}

export function ModuleChoice({ report, s }: { report: Report; s: ToolUrl }) {
  const t = report.tables.find((x) => x.id === "modules");
  if (!t || t.rows.length < 2) return null;
  const at = (id: string): number => t.columns.findIndex((c) => c.id === id);
  const [name, program, time] = [at("module"), at("program_id"), at("time")];
  if (name < 0 || program < 0) return null;
  const now = s.args["program_id"] || s.program || String(t.rows[0]![program]);
  return (
    <label class="choice">Program
      <select value={now} onChange={(e) => set({ op: "", program: "", args: { ...s.args, program_id: e.currentTarget.value, node_name: "" } })}>
        {t.rows.map((r) => (
          <option key={String(r[program])} value={String(r[program])}>
            {String(r[name]).replace(/\(\d+\)$/, "")}{time >= 0 && asNumber(r[time]) > 0 ? `, ${show(r[time], "ps")}` : ""} · {String(r[program])}
          </option>
        ))}
      </select>
    </label>
  );
}
