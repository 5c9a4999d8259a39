// What surrounds an op: the report's nodes and edges, drawn, and what can be said about the op in the middle.
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Report, Table } from "../../api/report";
import { GraphView, type GraphActions } from "../../charts/graph";
import { toDot } from "../../model/dot";
import { plural } from "../../model/format";
import { addName, drawnEdges, dropName, flipName, graphOf, graphPath, namesOf, programFiles, trailOf, type GraphNode } from "../../model/graph";
import { changeTable, markGraph } from "../../model/graphdiff";
import { graphPage } from "../../model/graphfile";
import { runTitle } from "../../model/runname";
import { Icon } from "../../widgets/icon";
import { Popover } from "../../widgets/popover";
import { ProblemPanel } from "../../widgets/problem";
import { save } from "../../widgets/save";
import { saveSvg, svgText } from "../../widgets/savesvg";
import { Loading } from "../../widgets/shell";
import { ThanChoice, useThan, type Diff } from "./graphdiff";
import { ModuleChoice } from "./modules";
import { OpFinder } from "./opfinder";
import { TablePart, type PartProps } from "./parts";
import { set, setArg } from "./state";

/** Tables that stand below the picture: those that answer the page's questions, then what is drawn. */
export function graphTables(r: Report): Table[] {
  const order = ["layouts", "fusion", "around", "nodes"];
  const made = graphOf(r);
  const whole = (made?.nodes[0]?.more ?? 0) === 0; // then what is around it is among the nodes
  const rank = (t: Table): number => (order.includes(t.id) ? order.indexOf(t.id) : order.length);
  return r.tables.filter((t) => t.id !== "edges" && t.id !== "path" && !(t.id === "around" && whole)).sort((x, y) => rank(x) - rank(y));
}

const RADII = ["1", "2", "3", "4", "6"];
const BUDGETS = ["30", "60", "120", "240", "400"];
const USUAL = "60";

export function GraphControls({ report, s }: PartProps) {
  const original = report.metrics.find((m) => m.id === "original_graph");
  const type = report.metrics.find((m) => m.id === "graph_type");
  const open = s.args["merge_fusion"] === "false";
  return (
    <div class="controls">
      <OpFinder report={report} s={s} />
      <ModuleChoice report={report} s={s} />
      {type && (
        <label class="choice" title={original?.reason ?? ""}>Graph
          <select value="" onChange={() => undefined}>
            <option value="">{String(type.value)}</option>
            <option value="original" disabled>original: not in the profile</option>
          </select>
        </label>
      )}
      <label class="choice">Radius
        <select value={s.args["radius"] || "2"} onChange={(e) => setArg("radius", e.currentTarget.value)}>
          {RADII.map((r) => <option key={r} value={r}>{r}</option>)}
        </select>
      </label>
      <label class="choice" title="How many ops of the neighbourhood are drawn; what is expanded or opened comes on top, up to 400">Ops
        <select value={s.args["nodes"] || USUAL} onChange={(e) => setArg("nodes", e.currentTarget.value === USUAL ? "" : e.currentTarget.value)}>
          {[...new Set([...BUDGETS, s.args["nodes"] || USUAL])].map((n) => <option key={n} value={n}>{n}</option>)}
        </select>
      </label>
      <label class="choice check" title="Off: what is inside of each fusion is drawn, too">
        <input type="checkbox" checked={!open} onChange={() => setArg("merge_fusion", open ? "" : "false")} /> Merge fusions
      </label>
    </div>
  );
}

export function GraphPart({ report, s, root, ...rest }: PartProps) {
  const expanded = s.args["expand"] ?? "";
  const inside = s.args["inside"] ?? "";
  const plain = useMemo(() => graphOf(report, new Set(namesOf(expanded))), [report, expanded]);
  const than = useThan(root, s, report, plain?.program ?? "");
  const made = useMemo(() => (plain && than.diff ? markGraph(plain, than.diff.a, than.diff.b, than.diff.changes) : plain ? { ...plain, ghosts: 0 } : null), [plain, than.diff]);
  const changed = useMemo(() => than.diff && plain && changeTable(than.diff.a, than.diff.b, than.diff.changes, than.diff.scale, plain.program, than.diff.words), [than.diff, plain?.program]);
  const head = useRef<HTMLDivElement>(null);
  const shown = useMemo(() => (made ? drawnEdges(made.nodes, made.edges) : []), [made]);
  // An op that is chosen elsewhere, in a table say, and is not drawn here: the graph goes there.
  const astray = plain !== null && plain.nodes.length > 0 && s.op !== "" && (s.args["node_name"] ?? "") !== "" && (s.program === "" || s.program === plain.program) && !plain.nodes.some((n) => n.id === s.op);
  useEffect(() => {
    if (astray) set({ args: { ...s.args, node_name: "" } }, false);
  }, [astray]);
  if (!made) return null;
  const { nodes, edges, left, middle } = made;
  if (nodes.length === 0) return <p class="none">No op is called so in this module.</p>;
  const picture = (): SVGSVGElement | null => head.current?.parentElement?.querySelector<SVGSVGElement>(".graph-box svg") ?? null;
  const paper = (svg: SVGSVGElement): string => getComputedStyle(svg.parentElement!).backgroundColor;
  const move = (op: string): void =>
    set({ op, program: made.program, args: { ...s.args, node_name: "", expand: "", inside: "", trail: trailOf(s.args["trail"] ?? "", middle, op) } });
  const act: GraphActions = {
    // What is inside of an op is looked at where it is: the graph moves there when it is chosen again. What only the other program has is looked up there.
    choose: (n) => {
      if (n.mark === "removed") return;
      if (n.within >= 0 && n.id !== s.op) set({ op: n.id, program: made.program, args: { ...s.args, node_name: middle } });
      else move(n.id);
    },
    grow: (n) => setArg("expand", addName(expanded, n.id)),
    shrink: (n) => setArg("expand", dropName(expanded, n.id)),
    look: (n) => {
      const args = { ...s.args, ...(n.opened && !namesOf(inside).includes(n.id) ? closeOne(nodes, n, s.args) : { inside: flipName(inside, n.id) }) };
      // What was chosen in there is not to be seen any more: then what holds it is.
      set(n.opened && holds(nodes, n, s.op) ? { args, op: n.id, program: made.program } : { args });
    },
  };
  const drawn = edges.filter((_, i) => shown[i]);
  const order = drawn.filter((e) => e.changes && e.changes !== "memory").length;
  const memory = drawn.filter((e) => e.changes === "memory").length;
  const copies = drawn.filter((e) => e.copy && !e.changes).length;
  const marked = (mark: string): number => nodes.filter((n) => n.mark === mark).length;
  const saveHtml = (svg: SVGSVGElement): void =>
    save(`${middle}.html`, "text/html", graphPage({
      title: `${middle}: neighbourhood`, svg: svgText(svg, paper(svg)), nodes,
      facts: [["Run", runTitle(s.run)], ["Program", made.program], ["Op", middle], ["Ops drawn", String(nodes.length)], ...(than.diff ? [["Compared", than.diff.words] as const] : [])],
    }));
  const withPicture = (go: (svg: SVGSVGElement) => void) => (): void => {
    const svg = picture();
    if (svg) go(svg);
  };
  const files = programFiles(report, s.run, made.program);
  return (
    <>
      <section class="panel" aria-label="Graph">
        <div class="panel-head" ref={head}>
          <h2>Neighbourhood</h2>
          <output class="table-count graph-legend">
            <span>{plural(nodes.length, "op")}{left > 0 && `, ${plural(left, "more op")} not drawn`} · operands above, users below · the warmer, the more time</span>
            {order > 0 && <b class="graph-key layout">⇄ {plural(order, "change")} of layout</b>}{memory > 0 && <b class="graph-key">⇄ {plural(memory, "change")} of memory</b>}{copies > 0 && <b class="graph-key copy">{plural(copies, "copy", "copies")}</b>}
            {than.diff && <><b class="mark-added">+ {marked("added")} added</b><b class="mark-removed">− {marked("removed")} removed{made.ghosts > 0 && ` (${made.ghosts} more not drawn)`}</b><b class="mark-changed">≠ {marked("changed")} changed</b></>}
          </output>
          <div class="graph-downloads push">
            <button type="button" class="button" title="Save the graph for Graphviz" onClick={() => save(`${middle}.dot`, "text/vnd.graphviz", toDot(middle, nodes, edges))}><Icon name="download" /> DOT</button>
            <button type="button" class="button" title="Save the picture" onClick={withPicture((svg) => saveSvg(middle, svg, paper(svg)))}><Icon name="download" /> SVG</button>
            <button type="button" class="button" title="Save the picture and its ops as a page that needs nothing else" onClick={withPicture(saveHtml)}><Icon name="download" /> HTML</button>
            {files.length > 0 && (
              <Popover title="The whole program as a file" right label={<><Icon name="download" /> Program</>}>
                {(close) => <div class="graph-files">{files.map((f) => <a key={f.label} class="button" title={f.title} href={root + f.href} download={f.name} onClick={close}>{f.label}</a>)}</div>}
              </Popover>
            )}
          </div>
        </div>
        <Crumbs report={report} s={s} middle={middle} choose={move} />
        {(than.programs.length > 0 || than.unknown) && <p class="row graph-than"><ThanChoice s={s} than={than} />{than.unknown && <span class="ago">There is no program {than.unknown} in {runTitle(than.run)}.</span>}{than.on && !than.diff && !than.problem && <Loading what="Reading both programs…" />}</p>}
        {than.problem && <ProblemPanel small problem={than.problem} />}
        <GraphView nodes={nodes} edges={edges} chosen={nodes.some((n) => n.id === s.op) ? s.op : middle} act={act} title="Neighbourhood" />
      </section>
      {changed && than.diff && <ChangeTable {...rest} report={report} s={s} root={root} t={changed} diff={than.diff} />}
    </>
  );
}

function ChangeTable({ t, diff, ...p }: PartProps & { t: Table; diff: Diff }) {
  const same = diff.changes.length - t.total_rows;
  if (t.total_rows === 0) return <p class="none">All {plural(same, "op")} of the two programs are the same. {diff.words}</p>;
  return <TablePart {...p} t={{ ...t, note: `${t.note ?? ""} ${plural(same, "op")} are the same.` }} first={false} />;
}

/** Is that op drawn inside of the node, at any depth? */
function holds(nodes: readonly GraphNode[], outer: GraphNode, op: string): boolean {
  let n = nodes.find((x) => x.id === op && x.within >= 0);
  for (let depth = 0; n && n.within >= 0 && depth < nodes.length; depth++) {
    n = nodes[n.within];
    if (n === outer) return true;
  }
  return false;
}

/** With all fusions open one is closed by opening the others by name. */
function closeOne(nodes: readonly GraphNode[], n: GraphNode, args: Record<string, string>): Record<string, string> {
  const open = nodes.filter((x) => x.opened && x !== n).map((x) => x.id);
  return { ...args, merge_fusion: "", inside: open.slice(0, 50).join(",") };
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
