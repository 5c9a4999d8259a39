// The buffers that make up a program's peak, over its order.
import { useMemo } from "preact/hooks";
import { Lifetimes, type Buffer } from "../../charts/lifetimes";
import { plural } from "../../model/format";
import { opColumns, opOf } from "../../model/ops";
import { asNumber, show } from "../../model/units";
import { ModuleChoice } from "./modules";
import type { PartProps } from "./parts";
import { set, setArg } from "./state";

const SPACES = [["0", "HBM"], ["1", "VMEM"], ["2", "SMEM"], ["3", "CMEM"], ["5", "host"]] as const;
const MOST = 400;

export function BufferControls({ report, s }: PartProps) {
  return (
    <div class="controls">
      <ModuleChoice report={report} s={s} />
      <label class="choice">Memory
        <select value={s.args["memory_space"] || "0"} onChange={(e) => setArg("memory_space", e.currentTarget.value === "0" ? "" : e.currentTarget.value)}>
          {SPACES.map(([v, name]) => <option key={v} value={v}>{name}</option>)}
        </select>
      </label>
    </div>
  );
}

export function BuffersPart({ report, s }: PartProps) {
  const t = report.tables.find((x) => x.id === "buffers");
  const order = report.series.find((x) => x.id === "program_order");
  const made = useMemo(() => {
    if (!t) return null;
    const at = (id: string): number => t.columns.findIndex((c) => c.id === id);
    const [begin, end, size, kind] = [at("begin"), at("end"), at("size"), at("kind")];
    if (begin < 0 || end < 0 || size < 0) return null;
    const c = opColumns(t);
    const told = ["size", "padding", "kind", "shape", "opcode", "framework_op"].map(at).filter((i) => i >= 0);
    const steps = order?.points.map((p) => asNumber(p[0])) ?? [];
    const last = Math.max(1, ...steps, ...t.rows.map((row) => asNumber(row[end]) || 0));
    // Without begin and end it lives as long as the program: arguments and results.
    const buffers = t.rows.slice(0, MOST).map((row, i): Buffer => ({
      key: String(i), name: opOf(row, c).op || "padding and the like", size: asNumber(row[size]) || 0,
      begin: row[begin] === null ? 0 : asNumber(row[begin]), end: row[end] === null ? last : asNumber(row[end]),
      kind: kind >= 0 && row[kind] !== null ? String(row[kind]) : "Other",
      facts: told.filter((k) => row[k] !== null).map((k) => [t.columns[k]!.label, show(row[k], t.columns[k]!.unit)]),
    }));
    const peak = order ? order.points.reduce((best, p) => (asNumber(p[1]) > asNumber(best[1]) ? p : best), order.points[0] ?? [-1, 0]) : null;
    return { buffers, last, peak: peak ? asNumber(peak[0]) : -1 };
  }, [report]);
  if (!t || !made || made.buffers.length === 0) return null;
  return (
    <section class="panel" aria-label="Lifetimes">
      <div class="panel-head">
        <h2>Lifetimes of the buffers at the peak</h2>
        <output class="table-count">{plural(made.buffers.length, "buffer")}{t.total_rows > made.buffers.length && ` of ${t.total_rows}, the largest`}</output>
      </div>
      <Lifetimes {...made} chosen={s.op} onChoose={(b) => set(opOf(t.rows[Number(b.key)]!, opColumns(t)))} />
    </section>
  );
}
