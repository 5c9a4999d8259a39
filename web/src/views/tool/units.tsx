// The units of the hardware against the devices, in one sample or as what changed from another; what
// a unit is, and the counters behind it.
import { useMemo } from "preact/hooks";
import type { Report, Table } from "../../api/report";
import { HeatMap } from "../../charts/heat";
import { plural } from "../../model/format";
import { matrixSeries } from "../../model/hardware";
import { lessBase } from "../../model/base";
import { runTitle } from "../../model/runname";
import { elsewhere, type ToolUrl } from "../../model/toolurl";
import { Icon } from "../../widgets/icon";
import type { PartProps } from "./parts";
import { SampleChoice, samplesOf } from "./samples";
import { setArg } from "./state";

/** The counters that a unit is made of, as the page of counters finds them. */
export function countersHref(root: string, s: ToolUrl, pattern: string): string {
  const { sample = "", against = "" } = s.args;
  return `${root}perf_counters${elsewhere(s, { q: `counter:/${pattern}/`, args: { zeros: "1", beside: "chips", sample, against } })}`;
}

function Meaning({ report, s, root }: PartProps) {
  const unit = s.args["unit"] ?? "";
  const t = report.tables.find((x) => x.id === "meanings");
  const row = unit && t?.rows.find((r) => r[0] === unit);
  if (!row) return <p class="none">The busiest node of each device. Choose a unit to read what it is and to see the counters behind it.</p>;
  return (
    <div class="unit-meaning" role="status">
      <b>{unit}</b> <span>{String(row[1] ?? "Nothing is known about it.")}</span>{" "}
      {row[2] && <a class="button" href={countersHref(root, s, String(row[2]))}><Icon name="table" /> Its counters</a>}
      <button type="button" class="tool" title="Choose no unit" aria-label="Choose no unit" onClick={() => setArg("unit", "", false)}><Icon name="close" /></button>
    </div>
  );
}

/** The tables that this part does not show itself. */
export const unitTables = (r: Report): Table[] => r.tables.filter((t) => t.id !== "matrix" && t.id !== "samples");

export function UnitsPart(p: PartProps) {
  const { report, s } = p;
  const own = report.tables.find((x) => x.id === "matrix");
  const t = useMemo(() => (own && p.base?.report ? lessBase(own, p.base.report.tables.find((x) => x.id === "matrix")) : own), [own, p.base]);
  const made = useMemo(() => (t ? matrixSeries(t) : null), [t]);
  if (!t || !made || made.series.names.length === 0) return null;
  return (
    <section class="panel" aria-label="Units by devices">
      <div class="panel-head">
        <h2>{t.title}{t !== own && `, less those of ${runTitle(p.base!.run)}`}</h2>
        <output class="table-count">
          {plural(made.series.names.length, "unit")} × {plural(made.series.points.length, "device")}{made.above > 0 && ` · ${plural(made.above, "figure")} beyond 100 % drawn as 100 %`}
        </output>
        <div class="push row"><SampleChoice report={report} s={s} first={samplesOf(report)[0]?.id ?? ""} /></div>
      </div>
      <HeatMap s={made.series} onRow={(name) => setArg("unit", name, false)} />
      <Meaning {...p} />
    </section>
  );
}
