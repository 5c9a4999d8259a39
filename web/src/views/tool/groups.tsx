// Ops by category, by layer of the model or by source file: one table of the three.
import type { Report, Table } from "../../api/report";
import type { ToolUrl } from "../../model/toolurl";
import type { PartProps } from "./parts";
import { setArg } from "./state";

const GROUPS = [["categories", "Category"], ["layers", "Layer"], ["sources", "Source file"]] as const;

const groupsOf = (r: Report) => GROUPS.filter(([id]) => r.tables.some((t) => t.id === id));

function shownGroup(r: Report, s: ToolUrl): string {
  const groups = groupsOf(r);
  return (groups.find(([id]) => id === s.args["by"]) ?? groups[0])?.[0] ?? "";
}

export function GroupControls({ report, s }: PartProps) {
  const groups = groupsOf(report);
  if (groups.length < 2) return null;
  const shown = shownGroup(report, s);
  return (
    <div class="controls">
      <span class="choice">Ops summed up by</span>
      <div class="switch" role="group" aria-label="Ops summed up by">
        {groups.map(([id, label]) => <button key={id} type="button" aria-pressed={id === shown} onClick={() => setArg("by", id === groups[0]![0] ? "" : id)}>{label}</button>)}
      </div>
    </div>
  );
}

export function groupedTables(r: Report, s: ToolUrl): Table[] {
  const shown = shownGroup(r, s);
  return r.tables.filter((t) => t.id === shown || !GROUPS.some(([id]) => id === t.id));
}

/** The model's layers before its operations one by one. */
export function layersFirst(r: Report): Table[] {
  const layers = r.tables.filter((t) => t.id === "layers");
  return [...layers, ...r.tables.filter((t) => !layers.includes(t))];
}
