// A graph in Graphviz's language, for those who have tools of their own.
import type { GraphEdge, GraphNode } from "./graph";

type Node = Pick<GraphNode, "id" | "opcode" | "shape" | "share" | "within" | "opened" | "mark">;
type Edge = Pick<GraphEdge, "from" | "to" | "kind" | "changes" | "fromLayout" | "toLayout">;

/** Names are text: neither quotes nor escapes of theirs mean anything. */
const quoted = (text: string): string => `"${text.replace(/[\\"]/g, "\\$&").replace(/[\r\n]+/g, " ")}"`;

const SIGNS = { added: "+ ", removed: "\u2212 ", changed: "\u2260 " } as const;

export function toDot(title: string, nodes: readonly Node[], edges: readonly Edge[]): string {
  const lines: string[] = [];
  const node = (i: number, air: string): void => {
    const n = nodes[i]!;
    const about = [n.opcode, n.shape, Number.isNaN(n.share) ? "" : `${(100 * n.share).toFixed(2)} % of the time`].filter(Boolean).join(", ");
    lines.push(`${air}n${i} [label=${quoted((n.mark ? SIGNS[n.mark] : "") + n.id)}, tooltip=${quoted(about)}];`);
  };
  const inside = (parent: number, depth: number): void => {
    nodes.forEach((n, i) => {
      if (n.within !== parent) return;
      const air = "  ".repeat(depth);
      if (!n.opened || depth > 32) return node(i, air);
      lines.push(`${air}subgraph cluster_${i} {`, `${air}  label=${quoted(n.id)};`);
      node(i, `${air}  `);
      inside(i, depth + 1);
      lines.push(`${air}}`);
    });
  };
  inside(-1, 1);
  const arrows = edges.map((e) => {
    const looks = [
      e.kind === "control" ? "style=dotted" : e.changes ? "style=dashed" : "", e.kind === "parameter" ? "arrowhead=empty" : "",
      e.changes ? `label=${quoted(`${e.changes}: ${e.fromLayout} \u2192 ${e.toLayout}`)}` : "",
    ].filter(Boolean).join(", ");
    return `  n${e.from} -> n${e.to}${looks && ` [${looks}]`};`;
  });
  return [`digraph ${quoted(title)} {`, "  node [shape=box, fontname=monospace];", ...lines, ...arrows, "}", ""].join("\n");
}
