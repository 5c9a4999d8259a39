// Requests of a server: which model, percentiles of what, and the distribution with its percentiles marked.
import type { Cell } from "../../api/report";
import { XyChart } from "../../charts/xy";
import { plural } from "../../model/format";
import { isDistribution, modelsOf, percentileMarks } from "../../model/latencies";
import { opColumns, timeOf, timeOfRequest } from "../../model/ops";
import { timelineHref } from "../../model/toolurl";
import { asNumber } from "../../model/units";
import type { PartProps } from "./parts";
import { Choice } from "./special";

const BY = [
  ["", "Latency"], ["prefill", "Prefill"], ["decode", "Decode"], ["compute", "Device"], ["preprocess", "Host, before"], ["postprocess", "Host, after"],
  ["formation", "Batching"], ["runtime", "Runtime"], ["to_device", "To device"], ["to_host", "To host"], ["idle", "Nothing"], ["delay", "Delay"], ["size", "Size"],
] as const;

export function InferenceControls({ report, s }: PartProps) {
  const models = modelsOf(report);
  return (
    <div class="controls">
      {models.length > 1 && <Choice name="model" label="Model" value={s.args["model"] ?? ""} options={[["", "all"], ...models.map((m) => [m, m] as const)]} />}
      <Choice name="by" label="Percentiles of" value={s.args["by"] ?? ""} options={BY} />
    </div>
  );
}

/** A bar of the breakdown is one request: where it is in the timeline. */
export function requestLink({ report, s, root }: PartProps): (point: readonly Cell[]) => string {
  const t = report.tables.find((x) => x.id === "percentiles");
  const host = report.hosts.length === 1 ? report.hosts[0]! : "";
  return (point) => {
    const row = t?.rows.find((r) => r[0] === point[0]);
    const time = t && row && (timeOf(row, opColumns(t), "ps") ?? timeOfRequest(report, t, row));
    const at = time && (time.host || host);
    return time ? timelineHref(root, s, { begin: time.begin, duration: time.duration, window: true, ...(at ? { host: at } : {}) }) : "";
  };
}

export function Distribution({ report }: PartProps) {
  const x = report.series.find(isDistribution);
  if (!x || x.points.length === 0) return null;
  const requests = x.points.reduce((n, p) => n + (asNumber(p[1]) || 0), 0);
  return (
    <section class="panel" aria-label={x.title}>
      <div class="panel-head">
        <h2>{x.title}</h2>
        <output class="table-count">{plural(requests, "request")} · the lines are the percentiles</output>
      </div>
      <XyChart s={x} marks={percentileMarks(report)} height={200} />
    </section>
  );
}
