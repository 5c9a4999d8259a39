// The buffers that make up a program's peak, over its order.
import { useMemo } from "preact/hooks";
import { Lifetimes, type Buffer } from "../../charts/lifetimes";
import { plural } from "../../model/format";
import { opColumns, opOf } from "../../model/ops";
import { asNumber, show } from "../../model/units";
import { ModuleChoice } from "./modules";
import { SeriesPart, type PartProps } from "./parts";
import { AllPrograms, BaseChoice, BufferDiff } from "./programs";
import { set, setArg } from "./state";

const SPACES = [["0", "HBM"], ["1", "VMEM"], ["2", "SMEM"], ["3", "CMEM"], ["5", "host"]] as const;
const MOST = 400;

export function BufferControls({ report, s }: PartProps) {
  return (
    <div class="controls">
      <ModuleChoice report={report} s={s} />
      <BaseChoice report={report} s={s} />
      <label class="choice">Memory
        <select value={s.args["memory_space"] || "0"} onChange={(e) => setArg("memory_space", e.currentTarget.value === "0" ? "" : e.currentTarget.value)}>
          {SPACES.map(([v, name]) => <option key={v} value={v}>{name}</option>)}
        </select>
      </label>
    </div>
  );
}

/** The rest of the page: the lifetimes, what is other than in the program that it is compared with, and all programs. */
export function MemoryParts(p: PartProps) {
  return <><BuffersPart {...p} /><BufferDiff {...p} /><AllPrograms {...p} /></>;
}

function BuffersPart({ report, s, root }: PartProps) {
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
  const zoom = /^(\d{1,9})-(\d{1,9})$/.exec(s.args["w"] ?? "");
  const [from, to] = zoom ? [Number(zoom[1]), Math.min(made.last, Number(zoom[2]))] : [0, made.last];
  const curve = order && { ...order, points: order.points.filter((x) => asNumber(x[0]) >= from && asNumber(x[0]) <= to) };
  return (
    <>
    {curve && <SeriesPart series={curve} report={report} s={s} root={root} />}
    <section class="panel" aria-label="Lifetimes">
      <div class="panel-head">
        <h2>Lifetimes of the buffers at the peak</h2>
        <output class="table-count">{plural(made.buffers.length, "buffer")}{t.total_rows > made.buffers.length && ` of ${t.total_rows}, the largest`} · drag to see some steps of the program</output>
        {zoom && <button type="button" class="button push" onClick={() => setArg("w", "")}>Whole program</button>}
      </div>
      <Lifetimes {...made} from={from} to={to} onSpan={(a, b) => setArg("w", `${a}-${b}`)} chosen={s.op} onChoose={(b) => set(opOf(t.rows[Number(b.key)]!, opColumns(t)))} />
    </section>
    </>
  );
}
