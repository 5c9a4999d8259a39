// What single tools have beside the parts of every report.
import type { ComponentChildren } from "preact";
import type { Cell, Report, Series, Table } from "../../api/report";
import { otherSeries } from "../../model/latencies";
import type { Pick } from "../../charts/xy";
import type { ToolUrl } from "../../model/toolurl";
import { setArg } from "./state";
import type { PartProps } from "./parts";
import { BufferControls, MemoryParts } from "./buffers";
import { CounterControls, CounterPart, counterTables } from "./counters";
import { EnvironmentPart, isEnvironment } from "./environment";
import { TopFindings } from "./findings";
import { GraphControls, GraphPart, graphTables } from "./graph";
import { GroupControls, groupedTables, IdleSwitch, layersFirst, TopSwitch } from "./groups";
import { Distribution, InferenceControls } from "./inference";
import { CausesPart, CounterKernels, kernelArguments, KernelControls, kernelElsewhere, kernelSpan, kernelTables, SourcePart, VersusPart } from "./kernels";
import { programArgument } from "./modules";
import { MegascaleParts, networkPick } from "./megascale";
import { AllocatorChoice, momentPick, MomentPart, momentTables } from "./moment";
import { lassoTables, RooflinePart } from "./roofline";
import { PodParts, podSeries } from "./torus";
import { isOwnMetric, isOwnTable, reportText, SuggestionsPart } from "./suggestions";
import { UnitsPart, unitTables } from "./units";

export interface Special {
  args?: (s: ToolUrl) => Record<string, string>; // for the server, besides those in the address
  controls?: (p: PartProps) => ComponentChildren; // at the right of the heading
  top?: (p: PartProps) => ComponentChildren; // below the tiles
  afterSeries?: (p: PartProps) => ComponentChildren;
  figuresLast?: boolean;
  elsewhere?: (id: string) => boolean; // figures that one of its own parts shows
  tables?: (r: Report, s: ToolUrl) => Table[];
  series?: (r: Report) => Series[];
  pick?: (x: Series, s: ToolUrl) => Pick | undefined; // what a click on a chart chooses
  span?: (x: Series, p: PartProps) => ((a: Cell | undefined, b: Cell | undefined) => void) | undefined; // what a drag over a chart chooses
  treeTitle?: (s: ToolUrl) => string;
  textTitle?: string;
  ownVerdict?: boolean; // one of its parts says what it comes down to
  markdown?: (p: PartProps) => string; // of the whole report, instead of the figures
}

/** The page that explains a metric. */
export function metricPage(id: string): string {
  if (/^input/.test(id)) return "input_pipeline_analyzer";
  if (/^step_time/.test(id)) return "pod_viewer";
  if (/idle|duty/.test(id)) return "trace";
  if (/^latency|^requests$/.test(id)) return "inference_profile";
  if (/_(op|eager)_fraction$/.test(id)) return "framework_op_stats";
  if (/^compute_\d/.test(id)) return "kernel_stats";
  if (/^roofline|^ridge|^arithmetic/.test(id)) return "roofline_model";
  if (/(mxu|flop_rate|hbm)/.test(id) && !/^peak/.test(id)) return "roofline_model";
  if (/peak_memory|capacity_memory/.test(id)) return "memory_profile";
  if (/collective|device_time/.test(id)) return "op_profile";
  if (/unattributed/.test(id)) return "kernel_stats";
  if (/straggler|clock/.test(id)) return "pod_viewer";
  return "";
}

/** A choice of one argument. */
export function Choice({ name, label, value, options }: { name: string; label: string; value: string; options: readonly (readonly [string, string])[] }) {
  return (
    <label class="choice">{label}
      <select value={value} onChange={(e) => setArg(name, e.currentTarget.value)}>
        {!options.some(([v]) => v === value) && <option value={value}>{value}</option>}
        {options.map(([v, text]) => <option key={v} value={v}>{text}</option>)}
      </select>
    </label>
  );
}

const GROUPS = [["category", "Category"], ["program", "Program"], ["scope", "Name scope"]] as const;

const byCaller = (s: ToolUrl): boolean => s.args["view"] === "callers";

export const specials: Record<string, Special | undefined> = {
  overview_page: { afterSeries: (p) => <><TopFindings {...p} /><EnvironmentPart {...p} /></>, elsewhere: isEnvironment },
  op_profile: {
    args: (s): Record<string, string> => (byCaller(s) ? { group_by: "scope" } : {}), // callers are scopes
    controls: ({ s }) => <div class="controls">{!byCaller(s) && <Choice name="group_by" label="Group by" value={s.args["group_by"] || "category"} options={GROUPS} />}<TopSwitch s={s} /><IdleSwitch s={s} /></div>,
    treeTitle: (s) => (byCaller(s) ? "Ops by caller" : `Ops by ${(GROUPS.find(([v]) => v === s.args["group_by"]) ?? GROUPS[0])[1].toLowerCase()}`),
  },
  kernel_utilization: {
    args: kernelArguments, controls: (p) => <KernelControls {...p} />, top: (p) => <CausesPart {...p} />, span: kernelSpan,
    afterSeries: (p) => <><VersusPart {...p} /><SourcePart {...p} /><CounterKernels {...p} /></>, tables: kernelTables, elsewhere: (id) => kernelElsewhere(id), treeTitle: () => "Regions of the run",
  },
  hlo_stats: { controls: (p) => <GroupControls {...p} />, tables: groupedTables },
  framework_op_stats: { controls: ({ s }) => <div class="controls"><IdleSwitch s={s} /></div>, treeTitle: (s) => (byCaller(s) ? "By caller" : "By name scope"), tables: layersFirst },
  utilization_viewer: { afterSeries: (p) => <UnitsPart {...p} />, tables: unitTables },
  megascale_stats: { afterSeries: (p) => <MegascaleParts {...p} />, pick: networkPick, elsewhere: (id) => /^(collective|occurrence)$/.test(id) },
  pod_viewer: { series: podSeries, afterSeries: (p) => <PodParts {...p} />, elsewhere: (id) => id === "channel" },
  inference_profile: { controls: (p) => <InferenceControls {...p} />, top: (p) => <Distribution {...p} />, series: (r) => otherSeries(r) },
  perf_counters: { controls: (p) => <CounterControls {...p} />, top: (p) => <CounterPart {...p} />, tables: counterTables },
  memory_profile: {
    controls: (p) => <AllocatorChoice {...p} />,
    // "0, worker-1": the allocator's name and its host.
    series: (r) => r.series.map((x) => {
      const [allocator, ...host] = x.title.split(", ");
      return x.id.startsWith("memory") && host.length > 0 ? { ...x, title: `Allocator ${allocator} on ${host.join(", ")}` } : x;
    }),
    pick: momentPick, afterSeries: (p) => <MomentPart {...p} />, tables: momentTables,
  },
  memory_viewer: {
    args: (s) => ({ ...programArgument(s), lifetimes: "all" }), controls: (p) => <BufferControls {...p} />, afterSeries: (p) => <MemoryParts {...p} />, series: () => [],
    tables: (r) => r.tables.filter((t) => t.id !== "lifetimes"), // drawn
  },
  smart_suggestion: {
    top: (p) => <SuggestionsPart {...p} />, tables: (r) => r.tables.filter((t) => !isOwnTable(t.id)), elsewhere: isOwnMetric, figuresLast: true, ownVerdict: true, markdown: reportText,
  },
  roofline_model: { top: (p) => <RooflinePart {...p} />, tables: lassoTables, series: (r) => r.series.filter((x) => x.kind !== "scatter") },
  graph_viewer: {
    args: (s) => ({ ...programArgument(s), ...(s.op && !s.args["node_name"] ? { node_name: s.op } : {}) }),
    controls: (p) => <GraphControls {...p} />, top: (p) => <GraphPart {...p} />, tables: (r) => graphTables(r), textTitle: "HLO text",
  },
};
