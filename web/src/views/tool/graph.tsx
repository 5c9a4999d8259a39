// What surrounds an op: the report's nodes and edges, drawn, and what can be said about the op in the middle.
import { useMemo, useRef } from "preact/hooks";
import type { Cell, Report, Table } from "../../api/report";
import { GraphView, type GraphEdge, type GraphNode } from "../../charts/graph";
import { toDot } from "../../model/dot";
import { plural } from "../../model/format";
import { asNumber } from "../../model/units";
import { Icon } from "../../widgets/icon";
import { save } from "../../widgets/save";
import { saveSvg } from "../../widgets/savesvg";
import { ModuleChoice } from "./modules";
import type { PartProps } from "./parts";
import { set, setArg } from "./state";

const BUDGET = 120; // nodes that are drawn

const col = (t: Table, ...ids: string[]): number => {
  for (const id of ids) {
    const at = t.columns.findIndex((c) => c.id === id);
    if (at >= 0) return at;
  }
  return -1;
};
const text = (v: Cell | undefined): string => (v === null || v === undefined ? "" : String(v));

const nodesOf = (r: Report): Table | undefined => r.tables.find((t) => t.id === "nodes");
const edgesOf = (r: Report): Table | undefined => r.tables.find((t) => t.id === "edges");

/** Tables that stand below the picture. */
export function graphTables(r: Report): Table[] {
  return r.tables.filter((t) => t.id !== "edges");
}

const RADII = ["1", "2", "3", "4", "6"];

export function GraphControls({ report, s }: PartProps) {
  return (
    <div class="controls">
      <search class="search">
        <Icon name="search" />
        <input
          data-filter type="text" spellcheck={false} placeholder="Find an op  ( / )" aria-label="Find an op" value={s.args["node_name"] ?? ""}
          title="Part of a name; Enter shows the op that fits best"
          onChange={(e) => set({ op: "", args: { ...s.args, node_name: e.currentTarget.value.trim() } })}
        />
      </search>
      <ModuleChoice report={report} s={s} />
      <label class="choice">Radius
        <select value={s.args["radius"] || "2"} onChange={(e) => setArg("radius", e.currentTarget.value)}>
          {RADII.map((r) => <option key={r} value={r}>{r}</option>)}
        </select>
      </label>
    </div>
  );
}

export function GraphPart({ report, s }: PartProps) {
  const made = useMemo(() => graphOf(report), [report]);
  const head = useRef<HTMLDivElement>(null);
  if (!made) return null;
  const { nodes, edges, left, middle } = made;
  const savePicture = (): void => {
    const svg = head.current?.parentElement?.querySelector<SVGSVGElement>(".graph-box svg");
    if (svg) saveSvg(middle, svg, getComputedStyle(svg.parentElement!).backgroundColor);
  };
  if (nodes.length === 0) return <p class="none">No op is called so in this module.</p>;
  return (
    <section class="panel" aria-label="Graph">
      <div class="panel-head" ref={head}>
        <h2>Neighbourhood</h2>
        <output class="table-count">{plural(nodes.length, "op")}{left > 0 && `, ${plural(left, "more op")} not drawn`} · operands above, users below · the bar is the share of time</output>
        <button type="button" class="button push" title="Save the graph for Graphviz" onClick={() => save(`${middle}.dot`, "text/vnd.graphviz", toDot(middle, nodes, edges))}><Icon name="download" /> DOT</button>
        <button type="button" class="button" title="Save the picture" onClick={savePicture}><Icon name="download" /> SVG</button>
      </div>
      <GraphView nodes={nodes} edges={edges} chosen={nodes.some((n) => n.id === s.op) ? s.op : middle} onChoose={(n) => set({ op: n.id, program: made.program, args: { ...s.args, node_name: "" } })} title="Neighbourhood" />
    </section>
  );
}

interface Graph {
  nodes: GraphNode[];
  edges: GraphEdge[];
  left: number; // ops that are not drawn
  middle: string; // the op in question
  program: string;
}

export function graphOf(r: Report): Graph | null {
  const nt = nodesOf(r);
  const et = edgesOf(r);
  if (!nt || !et) return null;
  const id = Math.max(0, col(nt, "op", "name", "id", "node"));
  const opcode = col(nt, "opcode", "category");
  const shape = col(nt, "shape", "type");
  const share = col(nt, "time_fraction", "time_share", "share", "self_fraction", "self_time_fraction");
  const far = col(nt, "distance", "depth", "level");
  const time = col(nt, "self_time");
  const whole = asNumber(r.metrics.find((m) => m.id === "program_time")?.value);
  const more = [col(nt, "more"), col(nt, "more_operands"), col(nt, "more_users")].filter((i) => i >= 0);
  const program = col(nt, "program_id");
  const layout = col(et, "layout_changes");
  const shareOf = (row: readonly Cell[]): number =>
    share >= 0 ? asNumber(row[share]) : time >= 0 && whole > 0 && row[time] !== null ? asNumber(row[time]) / whole : NaN;
  const rows = [...nt.rows];
  if (far >= 0) rows.sort((a, b) => Math.abs(asNumber(a[far]) || 0) - Math.abs(asNumber(b[far]) || 0));
  const kept = rows.slice(0, BUDGET);
  const at = new Map(kept.map((row, i) => [text(row[id]), i]));
  const from = Math.max(0, col(et, "from", "source", "operand"));
  const to = Math.max(0, col(et, "to", "target", "user"));
  const edges = et.rows.flatMap((e) => {
    const a = at.get(text(e[from]));
    const b = at.get(text(e[to]));
    return a === undefined || b === undefined || a === b ? [] : [{ from: a, to: b, layout: layout >= 0 && e[layout] === true }];
  });
  const nodes = kept.map((row): GraphNode => ({
    id: text(row[id]), label: text(row[id]), opcode: opcode >= 0 ? text(row[opcode]) : "", shape: shape >= 0 ? text(row[shape]) : "",
    share: shareOf(row), more: more.reduce((n, i) => n + (asNumber(row[i]) || 0), 0),
  }));
  const centre = far >= 0 ? kept.find((row) => asNumber(row[far]) === 0) : kept[0];
  return { nodes, edges, left: nt.total_rows - kept.length, middle: centre ? text(centre[id]) : "", program: kept[0] && program >= 0 ? text(kept[0][program]) : "" };
}
