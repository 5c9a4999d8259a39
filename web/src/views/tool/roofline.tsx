// The roofline: every op between the memory's slope and the peak, its area the time it takes.
import { useMemo } from "preact/hooks";
import type { Cell, Report, Table } from "../../api/report";
import { Scatter, type Dot, type Roof } from "../../charts/scatter";
import { seriesColours } from "../../charts/colours";
import { plural } from "../../model/format";
import { areaFilter } from "../../model/hardware";
import { amount, opColumns, opOf, weightColumn } from "../../model/ops";
import { parseFilter, rowMatches } from "../../model/tablemodel";
import { asNumber, show } from "../../model/units";
import type { PartProps } from "./parts";
import { set, setArg } from "./state";

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

/** The program as a whole, among its ops. */
function wholeOf(r: Report): Dot | null {
  const [x, y] = [metric(r, "arithmetic_intensity"), metric(r, "flop_rate")];
  if (!(x > 0) || !(y > 0)) return null;
  return { key: "whole", name: "The whole program", x, y, weight: 0.16, group: "", facts: [["FLOP rate", show(y, "flop/s")], ["Intensity", show(x, "flop/byte")], ["Time", "of the whole profile, idle time too"]] };
}

export function RooflinePart({ report, s }: PartProps) {
  const found = rooflineTable(report);
  const name = found === null || found.t === report.tables[0] ? "q" : `q.${found.t.id}`;
  const q = name === "q" ? s.q : s.args[name] ?? "";
  const made = useMemo(() => (found ? dotsOf(found.t, found.x, found.y, q) : null), [report, q]);
  const roofs = useMemo(() => roofsOf(report), [report]);
  const whole = useMemo(() => wholeOf(report), [report]);
  if (!found || !made) return null;
  const { dots, groups, missing, shown } = made;
  const chosen = s.op ? dots.find((d) => d.name === s.op)?.key ?? "" : "";
  const setQ = (text: string): void => (name === "q" ? set({ q: text }) : setArg(name, text));
  const [x, y] = [found.t.columns[found.x]!.id, found.t.columns[found.y]!.id];
  return (
    <section class="panel" aria-label="Roofline">
      <div class="panel-head">
        <h2>Roofline</h2>
        <output class="table-count">
          {plural(dots.length, "op")} drawn{missing > 0 && `; ${plural(missing, "op")} without flops or bytes cannot be`} · the area is the time
        </output>
        {q.trim() !== "" && (
          <span class="push row" role="status">
            <span class="ago">{plural(shown, "op")} as the table below is filtered</span>
            <button type="button" class="button" onClick={() => setQ("")}>All ops</button>
          </span>
        )}
      </div>
      {dots.length === 0
        ? <p class="none">No op of this profile has both flops and bytes.</p>
        : (
          <Scatter
            dots={dots} roofs={roofs} x={{ label: "Operational intensity", unit: "flop/byte" }} y={{ label: "FLOP rate", unit: "flop/s" }} groups={groups}
            colours={seriesColours(groups)} chosen={chosen} title="Roofline" whole={whole}
            onArea={(a) => setQ(areaFilter(q, x, y, a))}
            onChoose={(d) => {
              const row = d && found.t.rows[Number(d.key)];
              set(row ? opOf(row, opColumns(found.t)) : { op: "", program: "" });
            }}
          />
        )}
      <p class="none">A drag in the chart lists the ops of that area in the table below. ◇ is the whole program.</p>
    </section>
  );
}

function dotsOf(t: Table, x: number, y: number, q: string): { dots: Dot[]; groups: string[]; missing: number; shown: number } {
  const c = opColumns(t);
  const weight = weightColumn(t.columns);
  const category = t.columns.findIndex((k) => k.id === "category");
  const told = ["bound_by", "layer", "framework_op", "source"].map((id) => t.columns.findIndex((k) => k.id === id));
  const most = Math.max(1e-300, ...t.rows.map((r) => amount(r, weight) || 0));
  const say = (r: readonly Cell[], at: number): string => show(r[at], t.columns[at]!.unit);
  const filter = parseFilter(q, t.columns);
  const dots: Dot[] = [];
  let missing = 0;
  let shown = 0;
  t.rows.forEach((r, i) => {
    const px = asNumber(r[x]);
    const py = asNumber(r[y]);
    if (!(px > 0) || !(py > 0)) return void missing++;
    const dim = !rowMatches(r, t.columns, filter);
    if (!dim) shown++;
    dots.push({
      key: String(i), name: opOf(r, c).op, x: px, y: py, weight: (amount(r, weight) || 0) / most, dim,
      group: category >= 0 ? say(r, category) : "ops",
      facts: [weight, y, x, category, ...told].filter((k) => k >= 0 && r[k] !== null && r[k] !== "").map((k) => [t.columns[k]!.label, say(r, k)]),
    });
  });
  const byTime = new Map<string, number>();
  for (const d of dots) byTime.set(d.group, (byTime.get(d.group) ?? 0) + d.weight);
  return { dots, groups: [...byTime].sort((a, b) => b[1] - a[1]).map(([g]) => g), missing, shown };
}
