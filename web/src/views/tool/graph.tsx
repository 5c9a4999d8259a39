// What surrounds an op: the report's nodes and edges, drawn, and what can be said about the op in the middle.
import { useMemo, useRef } from "preact/hooks";
import type { Cell, Report, Table } from "../../api/report";
import { GraphView, type GraphEdge, type GraphNode } from "../../charts/graph";
import { toDot } from "../../model/dot";
import { plural } from "../../model/format";
import { asNumber } from "../../model/units";
import { Icon } from "../../widgets/icon";
import { copyOf, flipName, graphPath, namesOf, programFiles, trailOf } from "../../model/graph";
import { save } from "../../widgets/save";
import { saveSvg } from "../../widgets/savesvg";
import { ModuleChoice } from "./modules";
import { OpFinder } from "./opfinder";
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
  return r.tables.filter((t) => t.id !== "edges" && t.id !== "path");
}

const RADII = ["1", "2", "3", "4", "6"];

export function GraphControls({ report, s }: PartProps) {
  return (
    <div class="controls">
      <OpFinder report={report} s={s} />
      <ModuleChoice report={report} s={s} />
      <label class="choice">Radius
        <select value={s.args["radius"] || "2"} onChange={(e) => setArg("radius", e.currentTarget.value)}>
          {RADII.map((r) => <option key={r} value={r}>{r}</option>)}
        </select>
      </label>
    </div>
  );
}

export function GraphPart({ report, s, root }: PartProps) {
  const expanded = s.args["expand"] ?? "";
  const made = useMemo(() => graphOf(report, new Set(namesOf(expanded))), [report, expanded]);
  const head = useRef<HTMLDivElement>(null);
  if (!made) return null;
  const { nodes, edges, left, middle } = made;
  const savePicture = (): void => {
    const svg = head.current?.parentElement?.querySelector<SVGSVGElement>(".graph-box svg");
    if (svg) saveSvg(middle, svg, getComputedStyle(svg.parentElement!).backgroundColor);
  };
  if (nodes.length === 0) return <p class="none">No op is called so in this module.</p>;
  const choose = (op: string): void =>
    set({ op, program: made.program, args: { ...s.args, node_name: "", expand: "", trail: trailOf(s.args["trail"] ?? "", middle, op) } });
  const changes = edges.filter((e) => e.layout).length;
  const copies = edges.filter((e) => e.copy && !e.layout).length;
  return (
    <section class="panel" aria-label="Graph">
      <div class="panel-head" ref={head}>
        <h2>Neighbourhood</h2>
        <output class="table-count">{plural(nodes.length, "op")}{left > 0 && `, ${plural(left, "more op")} not drawn`} · operands above, users below · the warmer, the more time
          {changes > 0 && <> · <b class="graph-key layout">{plural(changes, "change")} of layout</b></>}{copies > 0 && <> · <b class="graph-key copy">{plural(copies, "copy", "copies")}</b></>}
        </output>
        <button type="button" class="button push" title="Save the graph for Graphviz" onClick={() => save(`${middle}.dot`, "text/vnd.graphviz", toDot(middle, nodes, edges))}><Icon name="download" /> DOT</button>
        <button type="button" class="button" title="Save the picture" onClick={savePicture}><Icon name="download" /> SVG</button>
        {programFiles(report, s.run, made.program).map((f) => <a key={f.label} class="button" title={f.title} href={root + f.href} download={f.name}><Icon name="download" /> {f.label}</a>)}
      </div>
      <Crumbs report={report} s={s} middle={middle} choose={choose} />
      <GraphView
        nodes={nodes} edges={edges} chosen={nodes.some((n) => n.id === s.op) ? s.op : middle} onChoose={(n) => choose(n.id)} title="Neighbourhood"
        onOpen={(n) => setArg("expand", flipName(expanded, n.id))}
      />
    </section>
  );
}

/** What the op is part of, from the program down, and where one came from. */
function Crumbs({ report, s, middle, choose }: { report: Report; s: PartProps["s"]; middle: string; choose: (op: string) => void }) {
  const path = graphPath(report);
  const trail = namesOf(s.args["trail"] ?? "").filter((op) => op !== middle);
  return (
    <nav class="graph-crumbs" aria-label="Where the op is">
      <span class="row">
        {path.computations.map((c, i) => (
          <span key={i} class="row">
            <span class="ago" title={`computation ${c}`}>{c}</span> <Icon name="right" />
            {i < path.ops.length ? <><button type="button" class="link" onClick={() => choose(path.ops[i]!)}>{path.ops[i]}</button> <Icon name="right" /></> : <b>{middle}</b>}
          </span>
        ))}
      </span>
      {trail.length > 0 && (
        <span class="row"><span class="ago">Seen before:</span> {trail.map((op) => <button key={op} type="button" class="link" onClick={() => choose(op)}>{op}</button>)}</span>
      )}
    </nav>
  );
}

interface Graph {
  nodes: GraphNode[];
  edges: GraphEdge[];
  left: number; // ops that are not drawn
  middle: string; // the op in question
  program: string;
}

export function graphOf(r: Report, open: ReadonlySet<string> = new Set()): Graph | null {
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
    return a === undefined || b === undefined || a === b ? [] : [{ from: a, to: b, layout: layout >= 0 && e[layout] === true, copy: opcode >= 0 && copyOf(text(kept[b]![opcode])) }];
  });
  const nodes = kept.map((row): GraphNode => ({
    id: text(row[id]), label: text(row[id]), opcode: opcode >= 0 ? text(row[opcode]) : "", shape: shape >= 0 ? text(row[shape]) : "",
    share: shareOf(row), open: open.has(text(row[id])), more: more.reduce((n, i) => n + (asNumber(row[i]) || 0), 0),
  }));
  const centre = far >= 0 ? kept.find((row) => asNumber(row[far]) === 0) : kept[0];
  return { nodes, edges, left: nt.total_rows - kept.length, middle: centre ? text(centre[id]) : "", program: kept[0] && program >= 0 ? text(kept[0][program]) : "" };
}
