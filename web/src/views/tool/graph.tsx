// What surrounds an op: the report's nodes and edges, drawn, and what can be said about the op in the middle.
import { useMemo } from "preact/hooks";
import type { Cell, Report, Table } from "../../api/report";
import { GraphView, type GraphNode } from "../../charts/graph";
import { plural } from "../../model/format";
import { asNumber } from "../../model/units";
import type { PartProps } from "./parts";
import { set } from "./state";

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

export function GraphPart({ report, s }: PartProps) {
  const made = useMemo(() => graphOf(report), [report]);
  if (!made) return null;
  const { nodes, edges, left, middle } = made;
  if (nodes.length === 0) return <p class="none">No op is called so in this module.</p>;
  return (
    <section class="panel" aria-label="Graph">
      <div class="panel-head">
        <h2>Neighbourhood</h2>
        <output class="table-count">{plural(nodes.length, "op")}{left > 0 && `, ${plural(left, "more op")} not drawn`} · operands above, users below · the bar is the share of time</output>
      </div>
      <GraphView nodes={nodes} edges={edges} chosen={s.op || middle} onChoose={(n) => set({ op: n.id, args: { ...s.args, node_name: "" } })} title="Neighbourhood" />
    </section>
  );
}

export function graphOf(r: Report): { nodes: GraphNode[]; edges: { from: number; to: number }[]; left: number; middle: string } | null {
  const nt = nodesOf(r);
  const et = edgesOf(r);
  if (!nt || !et) return null;
  const id = Math.max(0, col(nt, "op", "name", "id", "node"));
  const opcode = col(nt, "opcode", "category");
  const shape = col(nt, "shape", "type");
  const share = col(nt, "time_fraction", "time_share", "share", "self_fraction", "self_time_fraction");
  const far = col(nt, "distance", "depth", "level");
  const more = col(nt, "more", "not_shown");
  const rows = [...nt.rows];
  if (far >= 0) rows.sort((a, b) => Math.abs(asNumber(a[far]) || 0) - Math.abs(asNumber(b[far]) || 0));
  const kept = rows.slice(0, BUDGET);
  const at = new Map(kept.map((row, i) => [text(row[id]), i]));
  const from = Math.max(0, col(et, "from", "source", "operand"));
  const to = Math.max(0, col(et, "to", "target", "user"));
  const edges = et.rows.flatMap((e) => {
    const a = at.get(text(e[from]));
    const b = at.get(text(e[to]));
    return a === undefined || b === undefined || a === b ? [] : [{ from: a, to: b }];
  });
  const nodes = kept.map((row): GraphNode => ({
    id: text(row[id]), label: text(row[id]), opcode: opcode >= 0 ? text(row[opcode]) : "", shape: shape >= 0 ? text(row[shape]) : "",
    share: share >= 0 ? asNumber(row[share]) : NaN, more: more >= 0 ? asNumber(row[more]) || 0 : 0,
  }));
  const centre = far >= 0 ? kept.find((row) => asNumber(row[far]) === 0) : kept[0];
  return { nodes, edges, left: nt.total_rows - kept.length, middle: centre ? text(centre[id]) : "" };
}
