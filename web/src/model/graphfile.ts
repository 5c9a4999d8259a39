// The graph as a page of its own: the picture inline, no script, nothing fetched, names as text.
import type { GraphNode } from "./graph";
import { show } from "./units";

const MARKS: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** Text that means nothing to a browser, in an element or in quotes. */
export const escaped = (text: string): string => text.replace(/[&<>"']/g, (c) => MARKS[c]!).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, "\ufffd");

export interface GraphFile {
  title: string;
  facts: readonly (readonly [what: string, value: string])[];
  svg: string; // as an XMLSerializer writes it, without style sheets
  nodes: readonly GraphNode[];
}

/** The policy in its head lets it do nothing at all: not even names that got out of their text could. */
export function graphPage({ title, facts, svg, nodes }: GraphFile): string {
  const columns = nodes.some((n) => n.mark) ? 7 : 6;
  const row = (name: "th" | "td", cells: readonly string[]): string => `<tr>${cells.slice(0, columns).map((v) => `<${name}>${escaped(v)}</${name}>`).join("")}</tr>`;
  const rows = nodes.map((n) => {
    const inside = n.within >= 0 ? nodes[n.within]?.id ?? "" : "";
    return row("td", [n.id, n.opcode, n.shape, Number.isNaN(n.share) ? "n/a" : show(n.share, "fraction"), n.computation, inside, n.mark ?? ""]);
  });
  const head = row("th", ["Op", "Opcode", "Shape", "Share of the time", "Computation", "Inside of", "Against the other program"]);
  return [
    "<!DOCTYPE html>", '<html lang="en">', "<head>", '<meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; base-uri 'none'; form-action 'none'">`,
    '<meta name="viewport" content="width=device-width">', `<title>${escaped(title)}</title>`, "</head>", "<body>", `<h1>${escaped(title)}</h1>`, "<dl>",
    ...facts.map(([k, v]) => `<dt>${escaped(k)}</dt><dd>${escaped(v)}</dd>`), "</dl>", svg.replace(/^<\?xml[^>]*>/, ""), "<h2>Ops</h2>",
    '<table border="1" cellpadding="4">', `<thead>${head}</thead>`, "<tbody>", ...rows, "</tbody>", "</table>", "</body>", "</html>", "",
  ].join("\n");
}
