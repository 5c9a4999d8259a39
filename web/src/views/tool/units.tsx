// The units of the hardware against the devices, one sample at a time, above their table.
import { useMemo } from "preact/hooks";
import type { Cell, Series, Table } from "../../api/report";
import { HeatMap } from "../../charts/heat";
import { plural } from "../../model/format";
import { asNumber } from "../../model/units";
import type { PartProps } from "./parts";
import { Choice } from "./special";
import { set } from "./state";

interface Places {
  host: number;
  device: number;
  sample: number;
  unit: number;
  busy: number;
}

function placesOf(t: Table): Places | null {
  const at = (id: string): number => t.columns.findIndex((c) => c.id === id);
  const p = { host: at("host"), device: at("device"), sample: at("sample"), unit: at("unit"), busy: at("busy") };
  return Object.values(p).some((i) => i < 0) ? null : p;
}

function samplesOf(t: Table, p: Places): string[] {
  return [...new Set(t.rows.map((r) => String(r[p.sample])))].sort((a, b) => Number(a) - Number(b));
}

/** Of the nodes of a device the busiest; what is above the whole is drawn as the whole, and counted. */
function matrix(t: Table, p: Places, sample: string): { series: Series; above: number } {
  const rows = t.rows.filter((r) => String(r[p.sample]) === sample);
  const hosts = new Set(rows.map((r) => String(r[p.host])));
  const names = [...new Set(rows.map((r) => String(r[p.unit])))];
  const columns = new Map<string, Cell[]>();
  let above = 0;
  for (const r of rows) {
    const device = hosts.size > 1 ? `${String(r[p.host])}/${String(r[p.device])}` : String(r[p.device]);
    const column = columns.get(device) ?? [device, ...names.map(() => null)];
    columns.set(device, column);
    const i = names.indexOf(String(r[p.unit])) + 1;
    const v = asNumber(r[p.busy]);
    if (Number.isNaN(v)) continue;
    if (v > 1) above++;
    column[i] = Math.max(asNumber(column[i]) || 0, Math.min(1, v));
  }
  const series: Series = {
    id: "units", title: "Units by devices", x: { label: "device", unit: "", type: "text" }, y: { label: "Busy", unit: "fraction" },
    kind: "heat", names, points: [...columns.values()], total_points: columns.size, reduced: false,
  };
  return { series, above };
}

export function UnitsPart({ report, s }: PartProps) {
  const t = report.tables.find((x) => x.id === "units") ?? report.tables[0];
  const places = t && placesOf(t);
  const samples = useMemo(() => (t && places ? samplesOf(t, places) : []), [t]);
  const sample = samples.includes(s.args["w"] ?? "") ? s.args["w"]! : samples[0] ?? "";
  const made = useMemo(() => (t && places ? matrix(t, places, sample) : null), [t, sample]);
  if (!made || made.series.names.length === 0) return null;
  return (
    <section class="panel" aria-label="Units by devices">
      <div class="panel-head">
        <h2>Units by devices</h2>
        <output class="table-count">
          {plural(made.series.names.length, "unit")} × {plural(made.series.points.length, "device")}{made.above > 0 && ` · ${plural(made.above, "figure")} above 100 % drawn as 100 %`}
        </output>
        <div class="push">{samples.length > 1 && <Choice name="w" label="Sample" value={sample} options={samples.map((x) => [x, x] as const)} />}</div>
      </div>
      <HeatMap s={made.series} onRow={(name) => set({ q: `unit="${name.replaceAll('"', " ")}"` })} />
      <p class="none">The busiest node of each device. A unit that is chosen is looked for in the table below; the counters behind it are in <a href={`perf_counters?run=${encodeURIComponent(s.run)}`}>Counters</a>.</p>
    </section>
  );
}
