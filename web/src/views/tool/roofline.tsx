// The roofline: every op between the memory's slope and the peak, its area the time it takes.
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { Cell, Report, Table } from "../../api/report";
import { Scatter, SIGNS, type Dot, type Mark, type Roof } from "../../charts/scatter";
import { seriesColours } from "../../charts/colours";
import { plural } from "../../model/format";
import { areaFilter, areaOf } from "../../model/hardware";
import { formatLasso, inside, parseLasso, type Point } from "../../model/lasso";
import { amount, opColumns, opOf, weightColumn } from "../../model/ops";
import { parseFilter, rowMatches } from "../../model/tablemodel";
import { asNumber, parseAmount, show } from "../../model/units";
import type { ToolUrl } from "../../model/toolurl";
import { Popover } from "../../widgets/popover";
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

const MOST_STEPS = 200; // more marks tell nothing more

const SIGN: Record<string, Mark["sign"]> = { total: "total", hardware: "hardware", average: "average", step: "step" };

/** The program as a whole, by counters, and its steps, among its ops. */
function wholesOf(r: Report): { marks: Mark[]; steps: number } {
  const t = r.tables.find((x) => x.id === "programs");
  if (!t) return { marks: [], steps: 0 };
  const at = (id: string): number => t.columns.findIndex((c) => c.id === id);
  const [name, kind, time, x, y, hbm] = [at("step"), at("kind"), at("time"), at("intensity"), at("flop_rate"), at("hbm_rate")] as const;
  const marks = t.rows.map((row, i): Mark => ({
    key: `whole ${i}`, name: i === 0 ? "The whole program" : String(row[name]), x: asNumber(row[x]), y: asNumber(row[y]), weight: 0.16, group: "", sign: SIGN[String(row[kind])] ?? "total",
    facts: [["FLOP rate", show(row[y], "flop/s")], ["HBM rate", show(row[hbm], "bytes/s")], ["Intensity", show(row[x], "flop/byte")], ["Time", row[time] === null ? "of the whole profile, idle time too" : show(row[time], "ps")]],
  })).filter((m) => m.x > 0 && m.y > 0);
  const steps = marks.filter((m) => m.sign === "step");
  const few = new Set(steps.filter((_, i) => i % Math.ceil(steps.length / MOST_STEPS) === 0));
  // What is larger lies below what is smaller.
  return { marks: [...marks.filter((m) => m.sign !== "step"), ...few], steps: steps.length - few.size };
}

const tableName = (r: Report, t: Table): string => (t === r.tables[0] ? "q" : `q.${t.id}`);

/** The table of ops has those in the lasso only. */
export function lassoTables(r: Report, s: ToolUrl): Table[] {
  const found = rooflineTable(r);
  const lasso = parseLasso(s.args["lasso"] ?? "");
  if (!found || !lasso) return r.tables;
  const rows = found.t.rows.filter((row) => inside(lasso, asNumber(row[found.x]), asNumber(row[found.y])));
  return r.tables.map((t) => (t === found.t ? { ...t, rows, total_rows: rows.length, rest: null, note: [t.note, `The ${plural(rows.length, "op")} in the lasso; ${plural(t.total_rows - rows.length, "other")} are not listed.`].filter(Boolean).join(" ") } : t));
}

/** A rectangle by its sides, for who draws none. */
function AreaFields({ from, units, take, close }: { from: (string | null)[]; units: [string, string]; take: (area: [number, number, number, number]) => void; close: () => void }) {
  const names = ["Intensity from, FLOP/B", "Intensity to", "FLOP rate from, such as 10G or 1.5T", "FLOP rate to"];
  const submit = (e: Event): void => {
    e.preventDefault();
    const fields = [...(e.currentTarget as HTMLFormElement).querySelectorAll("input")];
    const v = fields.map((f, i) => (f.value.trim() === "" ? (i % 2 ? 1e30 : 1e-30) : parseAmount(f.value.replace(/\s*FLOP.*$/i, ""), units[i >> 1]!)));
    fields.forEach((f, i) => f.setCustomValidity(v[i]! > 0 ? "" : "a positive number"));
    if (v.every((x) => x > 0)) {
      take(v as [number, number, number, number]);
      close();
    } else {
      (e.currentTarget as HTMLFormElement).reportValidity();
    }
  };
  return (
    <form class="step-marker" onSubmit={submit}>
      {names.map((n, i) => <label key={n + i}>{n}<input class="field" type="text" inputMode="decimal" autocomplete="off" value={from[i] ?? ""} onInput={(e) => e.currentTarget.setCustomValidity("")} /></label>)}
      <p class="row"><button type="submit" class="button">List these ops</button></p>
    </form>
  );
}

export function RooflinePart({ report, s }: PartProps) {
  const found = rooflineTable(report);
  const free = useSignal(false);
  const name = found === null ? "q" : tableName(report, found.t);
  const q = name === "q" ? s.q : s.args[name] ?? "";
  const lasso = useMemo(() => parseLasso(s.args["lasso"] ?? ""), [s.args["lasso"]]);
  const made = useMemo(() => (found ? dotsOf(found.t, found.x, found.y, q, lasso) : null), [report, q, lasso]);
  const roofs = useMemo(() => roofsOf(report), [report]);
  const { marks, steps } = useMemo(() => wholesOf(report), [report]);
  if (!found || !made) return null;
  const { dots, groups, missing, shown } = made;
  const chosen = s.op ? dots.find((d) => d.name === s.op && (s.program === "" || d.program === s.program))?.key ?? "" : "";
  const choose = (text: string, line: string): void => set(name === "q" ? { q: text, args: { ...s.args, lasso: line } } : { args: { ...s.args, [name]: text, lasso: line } });
  const [x, y] = [found.t.columns[found.x]!.id, found.t.columns[found.y]!.id];
  const words = ["total", "hardware", "average", "step"].filter((k) => marks.some((m) => m.sign === k));
  return (
    <section class="panel" aria-label="Roofline">
      <div class="panel-head">
        <h2>Roofline</h2>
        <output class="table-count">
          {plural(dots.length, "op")} drawn{missing > 0 && `; ${plural(missing, "op")} without flops or bytes cannot be`} · the area is the time
        </output>
        {(q.trim() !== "" || lasso) && (
          <span class="row" role="status">
            <span class="ago">{plural(shown, "op")} as the table below is filtered</span>
            <button type="button" class="button" onClick={() => choose("", "")}>All ops</button>
          </span>
        )}
        <div class="push row">
          <div class="switch" role="group" aria-label="A drag draws">
            <button type="button" aria-pressed={!free.value} title="A drag chooses the ops in a rectangle" onClick={() => (free.value = false)}>Rectangle</button>
            <button type="button" aria-pressed={free.value} title="A drag chooses the ops inside of its line" onClick={() => (free.value = true)}>Lasso</button>
          </div>
          <Popover title="Choose an area by its sides" right label="Area…">
            {(close) => <AreaFields from={areaOf(q, x, y)} units={[found.t.columns[found.x]!.unit, found.t.columns[found.y]!.unit]} close={close} take={([x0, x1, y0, y1]) => choose(areaFilter(q, x, y, { x0, x1, y0, y1 }), "")} />}
          </Popover>
        </div>
      </div>
      {dots.length === 0
        ? <p class="none">No op of this profile has both flops and bytes.</p>
        : (
          <Scatter
            dots={dots} roofs={roofs} x={{ label: "Operational intensity", unit: "flop/byte" }} y={{ label: "FLOP rate", unit: "flop/s" }} groups={groups}
            colours={seriesColours(groups)} chosen={chosen} title="Roofline" wholes={marks} lasso={lasso}
            onArea={(a) => choose(areaFilter(q, x, y, a), "")}
            onLasso={free.value ? (points: Point[]) => choose(areaFilter(q, x, y, null), formatLasso(points)) : undefined}
            onChoose={(d) => {
              const row = d && found.t.rows[Number(d.key)];
              set(row ? opOf(row, opColumns(found.t)) : { op: "", program: "" });
            }}
          />
        )}
      <p class="none row roofline-key">
        <span>A drag in the chart lists the ops of that area in the table below.</span>
        {words.map((k) => <span key={k} class="legend-item"><svg width="18" height="18" aria-hidden="true"><path class={`whole-mark ${k}`} d={`M9 9${SIGNS[k as Mark["sign"]]}`} /></svg> {WORDS[k]}</span>)}
        {steps > 0 && <span class="ago">{plural(steps, "step")} more in the table</span>}
      </p>
    </section>
  );
}

const WORDS: Record<string, string> = { total: "the whole program", hardware: "the same by hardware counters", average: "the average of steps", step: "a step" };

interface OpDot extends Dot {
  program: string;
}

function dotsOf(t: Table, x: number, y: number, q: string, lasso: readonly Point[] | null): { dots: OpDot[]; groups: string[]; missing: number; shown: number } {
  const c = opColumns(t);
  const weight = weightColumn(t.columns);
  const category = t.columns.findIndex((k) => k.id === "category");
  const told = ["bound_by", "layer", "framework_op", "source"].map((id) => t.columns.findIndex((k) => k.id === id));
  const most = Math.max(1e-300, ...t.rows.map((r) => amount(r, weight) || 0));
  const say = (r: readonly Cell[], at: number): string => show(r[at], t.columns[at]!.unit);
  const filter = parseFilter(q, t.columns);
  const dots: OpDot[] = [];
  let missing = 0;
  let shown = 0;
  t.rows.forEach((r, i) => {
    const px = asNumber(r[x]);
    const py = asNumber(r[y]);
    if (!(px > 0) || !(py > 0)) return void missing++;
    const dim = !rowMatches(r, t.columns, filter) || (lasso !== null && !inside(lasso, px, py));
    if (!dim) shown++;
    dots.push({
      key: String(i), name: opOf(r, c).op, program: opOf(r, c).program, x: px, y: py, weight: (amount(r, weight) || 0) / most, dim,
      group: category >= 0 ? say(r, category) : "ops",
      facts: [weight, y, x, category, ...told].filter((k) => k >= 0 && r[k] !== null && r[k] !== "").map((k) => [t.columns[k]!.label, say(r, k)]),
    });
  });
  const byTime = new Map<string, number>();
  for (const d of dots) byTime.set(d.group, (byTime.get(d.group) ?? 0) + d.weight);
  return { dots, groups: [...byTime].sort((a, b) => b[1] - a[1]).map(([g]) => g), missing, shown };
}
