// Ops by category, layer of the model, source file, ...: one table of them. What else the pages of ops let one choose.
import type { Report, Table } from "../../api/report";
import type { ToolUrl } from "../../model/toolurl";
import type { PartProps } from "./parts";
import { setArg } from "./state";

const GROUPS = [["categories", "Category"], ["layers", "Layer"], ["sources", "Source file"], ["replica_groups", "Replica group"], ["rematerialization", "Rematerialization"], ["outside_compilation", "Outside compilation"]] as const;

const groupsOf = (r: Report) => GROUPS.filter(([id]) => r.tables.some((t) => t.id === id));

function shownGroup(r: Report, s: ToolUrl): string {
  const groups = groupsOf(r);
  return (groups.find(([id]) => id === s.args["sums"]) ?? groups[0])?.[0] ?? "";
}

export function GroupControls({ report, s }: PartProps) {
  const groups = groupsOf(report);
  if (groups.length < 2) return null;
  const shown = shownGroup(report, s);
  return (
    <div class="controls">
      <span class="choice">Ops summed up by</span>
      <div class="switch" role="group" aria-label="Ops summed up by">
        {groups.map(([id, label]) => <button key={id} type="button" aria-pressed={id === shown} onClick={() => setArg("sums", id === groups[0]![0] ? "" : id)}>{label}</button>)}
      </div>
    </div>
  );
}

export function groupedTables(r: Report, s: ToolUrl): Table[] {
  const shown = shownGroup(r, s);
  return r.tables.filter((t) => t.id === shown || !GROUPS.some(([id]) => id === t.id));
}

/** The model's layers before its operations one by one, and their types after these. */
export function layersFirst(r: Report): Table[] {
  const order = ["layers", "device", "device_types", "host", "host_types"];
  const place = (t: Table): number => (order.includes(t.id) ? order.indexOf(t.id) : order.length);
  return [...r.tables].sort((a, b) => place(a) - place(b));
}

/** Of one argument: absent, or that value. */
function Switch({ s, name, label, off, on, value }: Pick<PartProps, "s"> & { name: string; label: string; off: string; on: string; value: string }) {
  const now = s.args[name] ?? "";
  const isOn = now !== "" && now !== "0";
  return (
    <div class="switch" role="group" aria-label={label}>
      <button type="button" aria-pressed={!isOn} onClick={() => setArg(name, "")}>{off}</button>
      <button type="button" aria-pressed={isOn} onClick={() => setArg(name, value)}>{on}</button>
    </div>
  );
}

export function IdleSwitch({ s }: Pick<PartProps, "s">) {
  return <Switch s={s} name="idle" label="Idle time" off="Without idle" on="With idle" value="1" />;
}

/** Of each node of the tree the children that make up most of it. */
export function TopSwitch({ s }: Pick<PartProps, "s">) {
  const percent = /^[1-9]\d?$/.test(s.args["most"] ?? "") ? s.args["most"]! : "90";
  return <Switch s={s} name="most" label="Nodes of the tree" off="All nodes" on={`Top ${percent} %`} value={percent} />;
}
