// A graph in Graphviz's language, for those who have tools of their own.
interface Node {
  label: string;
  opcode: string;
  shape: string;
  share: number;
}

interface Edge {
  from: number;
  to: number;
  layout: boolean;
}

/** Names are text: neither quotes nor escapes of theirs mean anything. */
const quoted = (text: string): string => `"${text.replace(/[\\"]/g, "\\$&").replace(/[\r\n]+/g, " ")}"`;

export function toDot(title: string, nodes: readonly Node[], edges: readonly Edge[]): string {
  const lines = nodes.map((n, i) => {
    const about = [n.opcode, n.shape, Number.isNaN(n.share) ? "" : `${(100 * n.share).toFixed(2)} % of the time`].filter(Boolean).join(", ");
    return `  n${i} [label=${quoted(n.label)}, tooltip=${quoted(about)}];`;
  });
  const arrows = edges.map((e) => `  n${e.from} -> n${e.to}${e.layout ? " [style=dashed]" : ""};`);
  return [`digraph ${quoted(title)} {`, "  node [shape=box, fontname=monospace];", ...lines, ...arrows, "}", ""].join("\n");
}
