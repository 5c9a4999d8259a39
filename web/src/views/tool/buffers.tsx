// The buffers that make up a program's peak, over its order.
import { useMemo } from "preact/hooks";
import type { Report, Series } from "../../api/report";
import { Lifetimes } from "../../charts/lifetimes";
import { plural } from "../../model/format";
import { zoomOf, type Buffer } from "../../model/lifetimes";
import { opColumns, opOf } from "../../model/ops";
import { asNumber, show } from "../../model/units";
import { Icon } from "../../widgets/icon";
import { savePng, saveSvg } from "../../widgets/savesvg";
import { ModuleChoice } from "./modules";
import { SeriesPart, type PartProps } from "./parts";
import { AllPrograms, BaseChoice, BufferDiff } from "./programs";
import { set, setArg } from "./state";

/** The memories that the program has buffers in. */
function spacesOf(report: Report, now: string): [value: string, label: string][] {
  const t = report.tables.find((x) => x.id === "spaces");
  const at = (id: string): number => t?.columns.findIndex((c) => c.id === id) ?? -1;
  const [space, name, size] = [at("space"), at("name"), at("size")];
  const all = (t?.rows ?? []).map((r): [string, string] => [String(r[space]), `${r[name] === null ? `memory ${String(r[space])}` : String(r[name])}, ${show(r[size], "bytes")}`]);
  return all.some(([v]) => v === now) ? all : [...all, [now, now === "0" ? "HBM" : `memory ${now}`]];
}

export function BufferControls({ report, s }: PartProps) {
  const space = s.args["memory_space"] || "0";
  return (
    <div class="controls">
      <ModuleChoice report={report} s={s} />
      <BaseChoice report={report} s={s} />
      <label class="choice">Memory
        <select value={space} onChange={(e) => set({ args: { ...s.args, memory_space: e.currentTarget.value === "0" ? "" : e.currentTarget.value, w: "" } })}>
          {spacesOf(report, space).map(([v, name]) => <option key={v} value={v}>{name}</option>)}
        </select>
      </label>
    </div>
  );
}

/** The rest of the page: the lifetimes, what is other than in the program that it is compared with, and all programs. */
export function MemoryParts(p: PartProps) {
  return <><BuffersPart {...p} /><BufferDiff {...p} /><AllPrograms {...p} /></>;
}

/** Of the program's order. */
const lastOf = (order: Series | undefined): number => (order?.points ?? []).reduce((n, p) => Math.max(n, asNumber(p[0])), 1);

/** All buffers of the program where the server tells them, else those of its peak. */
function BuffersPart({ report, s, root }: PartProps) {
  const t = report.tables.find((x) => x.id === "lifetimes") ?? report.tables.find((x) => x.id === "buffers");
  const order = report.series.find((x) => x.id === "program_order");
  const left = report.series.find((x) => x.id === "lifetimes_rest");
  const made = useMemo(() => {
    if (!t) return { buffers: [], last: lastOf(order), peak: -1 };
    const at = (id: string): number => t.columns.findIndex((c) => c.id === id);
    const [begin, end, size, kind, allocation, offset, atPeak] = [at("begin"), at("end"), at("size"), at("kind"), at("allocation"), at("offset"), at("at_peak")] as const;
    if (begin < 0 || end < 0 || size < 0) return { buffers: [], last: lastOf(order), peak: -1 };
    const c = opColumns(t);
    const told = ["size", "padding", "kind", "shape", "opcode", "framework_op", "source", "offset", "begin", "end"].map(at).filter((i) => i >= 0);
    const last = Math.max(lastOf(order), ...t.rows.map((row) => asNumber(row[end]) || 0));
    // Without begin and end it lives as long as the program: arguments and results.
    const buffers = t.rows.map((row, i): Buffer => ({
      key: String(i), name: opOf(row, c).op || "padding and the like", size: asNumber(row[size]) || 0,
      begin: row[begin] === null ? 0 : asNumber(row[begin]), end: row[end] === null ? last : asNumber(row[end]),
      kind: kind >= 0 && row[kind] !== null ? String(row[kind]) : "Other",
      place: allocation >= 0 && offset >= 0 && row[allocation] !== null ? { allocation: asNumber(row[allocation]), offset: asNumber(row[offset]) } : null,
      facts: told.filter((k) => row[k] !== null).map((k) => [t.columns[k]!.label, show(row[k], t.columns[k]!.unit)]),
      ...(atPeak >= 0 ? { atPeak: row[atPeak] === true } : {}),
    }));
    const peak = order ? order.points.reduce((best, p) => (asNumber(p[1]) > asNumber(best[1]) ? p : best), order.points[0] ?? [-1, 0]) : null;
    return { buffers, last, peak: peak ? asNumber(peak[0]) : -1 };
  }, [report]);
  const line = useMemo(() => (order?.points ?? []).map((p): [number, number] => [asNumber(p[0]), asNumber(p[1])]), [order]);
  const more = useMemo(() => (left?.points ?? []).map((p): [number, number, number] => [asNumber(p[0]), asNumber(p[1]), asNumber(p[2])]), [left]);
  const zoom = zoomOf(s.args["w"] ?? "", made.last);
  const [from, to] = zoom ?? [0, made.last];
  const offsets = s.args["axis"] === "offset";
  const picture = (e: Event, how: typeof saveSvg | typeof savePng): void => {
    const panel = (e.currentTarget as Element).closest("section")!;
    const svg = panel.querySelector<SVGSVGElement>(".lifetimes .plot svg");
    if (svg) void how("lifetimes", svg, getComputedStyle(panel).backgroundColor);
  };
  if (!t || made.buffers.length === 0)
    return (
      <>
        {order && order.points.length > 0 && <SeriesPart series={order} report={report} s={s} root={root} />}
        {(t || order) && <p class="none">{order?.points.length ? "No buffers of this memory are told at its peak." : "The program has no buffers in this memory."}</p>}
      </>
    );
  const all = t.id === "lifetimes";
  return (
    <section class="panel" aria-label="Lifetimes">
      <div class="panel-head">
        <h2>{all ? "Lifetimes of the buffers" : "Lifetimes of the buffers at the peak"}</h2>
        <output class="table-count">{plural(made.buffers.length, "buffer")}{t.total_rows > made.buffers.length && ` of ${t.total_rows}, the largest`} · drag to see some steps of the program</output>
        <div class="switch push" role="group" aria-label="Heights say">
          <button type="button" aria-pressed={!offsets} onClick={() => setArg("axis", "")}>Size</button>
          <button type="button" aria-pressed={offsets} title="Where buffers lie in their allocations" onClick={() => setArg("axis", "offset")}>Offset</button>
        </div>
        {zoom && <button type="button" class="button" onClick={() => setArg("w", "")}>Whole program</button>}
        <button type="button" class="button" title="Save the picture" onClick={(e) => picture(e, saveSvg)}><Icon name="download" /> SVG</button>
        <button type="button" class="button" title="Save the picture" onClick={(e) => picture(e, savePng)}><Icon name="download" /> PNG</button>
      </div>
      <Lifetimes {...made} curve={line} more={more} offsets={offsets} from={from} to={to} onSpan={(a, b) => setArg("w", `${a}-${b}`)} chosen={s.op} onChoose={(b) => set(opOf(t.rows[Number(b.key)]!, opColumns(t)))} />
    </section>
  );
}
