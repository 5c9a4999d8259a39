// The roofline: every op between the memory's slope and the peak, its area the time it takes.
import { useMemo } from "preact/hooks";
import type { Cell, Report, Table } from "../../api/report";
import { Scatter, type Dot, type Roof } from "../../charts/scatter";
import { seriesColours } from "../../charts/colours";
import { plural } from "../../model/format";
import { amount, opColumns, opOf, weightColumn } from "../../model/ops";
import { asNumber, show } from "../../model/units";
import type { PartProps } from "./parts";
import { set } from "./state";

const column = (t: Table, ...res: RegExp[]): number => {
  for (const re of res) {
    const at = t.columns.findIndex((c) => re.test(c.id));
    if (at >= 0) return at;
  }
  return -1;
};

/** The table that has an intensity and a rate for each op. */
export function rooflineTable(r: Report): { t: Table; x: number; y: number } | null {
  for (const t of r.tables) {
    const x = column(t, /^operational_intensity$/, /^intensity$/, /hbm.*intensity/, /intensity/);
    const y = column(t, /^flop_rate$/, /^measured_flop_rate$/, /normalized_flop_rate/, /flop_rate/);
    if (x >= 0 && y >= 0 && opColumns(t).op >= 0) return { t, x, y };
  }
  return null;
}

const metric = (r: Report, id: string): number => asNumber(r.metrics.find((m) => m.id === id)?.value);

export function roofsOf(r: Report): Roof[] {
  const peak = metric(r, "peak_flop_rate");
  if (!(peak > 0)) return [];
  const roofs: Roof[] = [];
  const table = r.tables.find((t) => t.id === "roofs");
  const name = table ? column(table, /^memory$/) : -1;
  const rate = table ? column(table, /^peak_rate$/) : -1;
  for (const row of (name >= 0 && rate >= 0 && table?.rows) || [])
    if (asNumber(row[rate]) > 0) roofs.push({ name: `${String(row[name])} ${show(row[rate], "bytes/s")}`, peak, slope: asNumber(row[rate]) });
  if (roofs.length) return roofs;
  for (const [id, name] of [["peak_hbm_rate", "HBM"], ["peak_vmem_rate", "VMEM"], ["peak_vmem_read_rate", "VMEM read"], ["peak_cmem_rate", "CMEM"], ["peak_l1_rate", "L1 / shared"], ["peak_shared_rate", "Shared memory"]] as const) {
    const rate = metric(r, id);
    if (rate > 0) roofs.push({ name: `${name} ${show(rate, "bytes/s")}`, peak, slope: rate });
  }
  return roofs.length ? roofs : [{ name: "peak", peak, slope: 0 }];
}

export function RooflinePart({ report, s }: PartProps) {
  const found = rooflineTable(report);
  const made = useMemo(() => (found ? dotsOf(found.t, found.x, found.y) : null), [report]);
  const roofs = useMemo(() => roofsOf(report), [report]);
  if (!found || !made) return null;
  const { dots, groups, missing } = made;
  const chosen = s.op ? dots.find((d) => d.name === s.op)?.key ?? "" : "";
  return (
    <section class="panel" aria-label="Roofline">
      <div class="panel-head">
        <h2>Roofline</h2>
        <output class="table-count">
          {plural(dots.length, "op")} drawn{missing > 0 && `; ${plural(missing, "op")} without flops or bytes cannot be`} · the area is the time
        </output>
      </div>
      {dots.length === 0
        ? <p class="none">No op of this profile has both flops and bytes.</p>
        : (
          <Scatter
            dots={dots} roofs={roofs} x={{ label: "Operational intensity", unit: "flop/byte" }} y={{ label: "FLOP rate", unit: "flop/s" }} groups={groups}
            colours={seriesColours(groups)} chosen={chosen} title="Roofline"
            onChoose={(d) => {
              const row = d && found.t.rows[Number(d.key)];
              set(row ? opOf(row, opColumns(found.t)) : { op: "", program: "" });
            }}
          />
        )}
    </section>
  );
}

function dotsOf(t: Table, x: number, y: number): { dots: Dot[]; groups: string[]; missing: number } {
  const c = opColumns(t);
  const weight = weightColumn(t.columns);
  const category = t.columns.findIndex((k) => k.id === "category");
  const bound = t.columns.findIndex((k) => k.id === "bound_by");
  const framework = t.columns.findIndex((k) => /^(framework_op|tf_op|framework|source)/.test(k.id));
  const most = Math.max(1e-300, ...t.rows.map((r) => amount(r, weight) || 0));
  const say = (r: readonly Cell[], at: number): string => show(r[at], t.columns[at]!.unit);
  const dots: Dot[] = [];
  let missing = 0;
  t.rows.forEach((r, i) => {
    const px = asNumber(r[x]);
    const py = asNumber(r[y]);
    if (!(px > 0) || !(py > 0)) return void missing++;
    dots.push({
      key: String(i), name: opOf(r, c).op, x: px, y: py, weight: (amount(r, weight) || 0) / most,
      group: category >= 0 ? say(r, category) : "ops",
      facts: [weight, y, x, category, bound, framework].filter((k) => k >= 0 && r[k] !== null && r[k] !== "").map((k) => [t.columns[k]!.label, say(r, k)]),
    });
  });
  const byTime = new Map<string, number>();
  for (const d of dots) byTime.set(d.group, (byTime.get(d.group) ?? 0) + d.weight);
  return { dots, groups: [...byTime].sort((a, b) => b[1] - a[1]).map(([g]) => g), missing };
}
