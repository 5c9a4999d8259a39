// What surrounds an op, drawn here: boxes in layers, operands above, users below.
import { useSignal } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { categorize, colourOf } from "../model/colour";
import { palette } from "../model/theme";
import { show } from "../model/units";
import { layered, type Edge } from "./layered";
import { shorten } from "./xy";

export interface GraphEdge extends Edge {
  layout: boolean; // of the operand changes on the way
  copy: boolean; // it is copied, or begins to be
}

export interface GraphNode {
  id: string;
  label: string;
  opcode: string;
  shape: string;
  share: number; // of the time; NaN: not known
  more: number; // neighbours that are not drawn
  open: boolean; // all that can be drawn of its neighbours was asked for
}

const HEIGHT = 46;
const MAX_WIDTH = 250;

export function GraphView({ nodes, edges, chosen, onChoose, onOpen, title }: {
  nodes: readonly GraphNode[]; edges: readonly GraphEdge[]; chosen: string; onChoose: (n: GraphNode) => void; onOpen: (n: GraphNode) => void; title: string;
}) {
  const box = useRef<HTMLDivElement>(null);
  const zoom = useSignal(1);
  const focused = useSignal(""); // by id: the nodes change where one is expanded or collapsed
  const walk = useRef<string[]>([]); // what Left and Right go through: the operands, or users, that one of was come to
  const colours = palette.value;
  const widths = useMemo(
    () => nodes.map((n) => Math.min(MAX_WIDTH, Math.max(90, (n.more > 0 || n.open ? 70 : 22) + 7.2 * Math.max(n.label.length, Math.min(30, n.shape.length) * 0.86)))),
    [nodes],
  );
  const at = useMemo(() => layered(widths, HEIGHT, edges), [nodes, edges]);
  const middle = nodes.findIndex((n) => n.id === chosen);
  const focus = focused.value === "" ? -1 : nodes.findIndex((n) => n.id === focused.value);
  const most = Math.max(1e-12, ...nodes.map((n) => (Number.isNaN(n.share) ? 0 : n.share)));

  useLayoutEffect(() => {
    walk.current = [];
  }, [nodes]);
  useLayoutEffect(() => {
    const b = box.current;
    if (!b || middle < 0) return;
    b.scrollLeft = (at.x[middle]! + 20) * zoom.value - b.clientWidth / 2;
    b.scrollTop = (at.y[middle]! + 20) * zoom.value - b.clientHeight / 2 + HEIGHT / 2;
  }, [at, middle, zoom.value]);

  const see = (i: number): void => {
    focused.value = nodes[i]!.id;
    const b = box.current;
    if (!b) return;
    const x = (at.x[i]! + 20) * zoom.peek();
    const y = (at.y[i]! + 20) * zoom.peek();
    if (x < b.scrollLeft + 60 || x > b.scrollLeft + b.clientWidth - 60) b.scrollLeft = x - b.clientWidth / 2;
    if (y < b.scrollTop || y + HEIGHT > b.scrollTop + b.clientHeight) b.scrollTop = y - b.clientHeight / 2;
  };
  const step = (list: number[]): void => {
    if (list.length === 0) return;
    const row = [...new Set(list)].sort((a, b) => at.x[a]! - at.x[b]!);
    walk.current = row.map((i) => nodes[i]!.id);
    see(row[0]!);
  };
  const aside = (now: number, by: number): void => {
    const row = walk.current.includes(nodes[now]!.id) && walk.current.length > 1
      ? walk.current.map((id) => nodes.findIndex((n) => n.id === id)).filter((i) => i >= 0)
      : nodes.map((_, i) => i).filter((i) => at.layer[i] === at.layer[now]).sort((a, b) => at.x[a]! - at.x[b]!);
    see(row[(row.indexOf(now) + by + row.length) % row.length]!);
  };
  const keys = (e: KeyboardEvent): void => {
    const now = focus >= 0 ? focus : Math.max(0, middle);
    if (!nodes[now]) return;
    if (e.key === "ArrowUp") step(edges.filter((x) => x.to === now).map((x) => x.from));
    else if (e.key === "ArrowDown") step(edges.filter((x) => x.from === now).map((x) => x.to));
    else if (e.key === "ArrowLeft") aside(now, -1);
    else if (e.key === "ArrowRight") aside(now, 1);
    else if (e.key === "Enter") onChoose(nodes[now]);
    else if (e.key === " " || e.key === "e") void ((nodes[now].more > 0 || nodes[now].open) && onOpen(nodes[now]));
    else if (e.key === "+" || e.key === "=") zoom.value = Math.min(2, zoom.peek() * 1.2);
    else if (e.key === "-") zoom.value = Math.max(0.3, zoom.peek() / 1.2);
    else return;
    e.preventDefault();
  };
  const w = at.width + 40;
  const h = at.height + 40;
  const told = nodes[focus];
  return (
    <figure class="chart graph" aria-label={title}>
      <div
        ref={box} class="graph-box" tabIndex={0} role="application" onKeyDown={keys}
        aria-label={`${title}: ${nodes.length} ops. Up: operands, down: users, left and right: the others of these, Enter: choose, space: expand or collapse, plus and minus: zoom.`}
      >
        <svg width={w * zoom.value} height={h * zoom.value} viewBox={`-20 -20 ${w} ${h}`} aria-hidden="true">
          <defs>
            <marker id="graph-tip" viewBox="0 0 8 8" refX="7" refY="4" markerUnits="userSpaceOnUse" markerWidth="9" markerHeight="9" orient="auto"><path d="M0 0.5 8 4 0 7.5Z" class="graph-arrow" /></marker>
          </defs>
          {edges.map((e, i) => {
            const x0 = at.x[e.from]!;
            const y0 = at.y[e.from]! + HEIGHT;
            const x1 = at.x[e.to]!;
            const y1 = at.y[e.to]!;
            const bend = Math.max(14, (y1 - y0) / 2);
            const lit = e.from === focus || e.to === focus || (focus < 0 && (e.from === middle || e.to === middle));
            return <path key={i} class={`graph-edge ${lit ? "lit" : ""} ${e.layout ? "layout" : e.copy ? "copy" : ""}`} d={`M${x0} ${y0}C${x0} ${y0 + bend} ${x1} ${y1 - bend} ${x1} ${y1 - 1}`} marker-end="url(#graph-tip)" />;
          })}
          {nodes.map((n, i) => {
            const width = widths[i]!;
            const x = at.x[i]! - width / 2;
            const y = at.y[i]!;
            const chars = Math.floor((width - (n.more > 0 || n.open ? 70 : 20)) / 7);
            return (
              <g
                key={n.id} class={`graph-node ${n.id === chosen ? "chosen" : ""} ${i === focus ? "focus" : ""} ${/copy|transpose|bitcast-convert|reshape/.test(n.opcode) ? "layout" : ""}`}
                transform={`translate(${x} ${y})`} onClick={() => onChoose(n)} onPointerEnter={() => (focused.value = n.id)} onPointerLeave={() => (focused.value = "")}
              >
                <title>{`${n.label}\n${n.opcode} ${n.shape}${Number.isNaN(n.share) ? "" : `\n${show(n.share, "fraction")} of the time`}${n.more ? `\n${n.more} more neighbours` : ""}`}</title>
                <rect class="graph-card" width={width} height={HEIGHT} rx={6} />
                {!Number.isNaN(n.share) && n.id !== chosen && <rect class="graph-warm" width={width} height={HEIGHT} rx={6} style={{ fillOpacity: (0.34 * n.share) / most }} />}
                <rect class="graph-hue" width={5} height={HEIGHT} rx={2} fill={colourOf(n.opcode || n.label, categorize(n.opcode || n.label, "device"), colours)} />
                {!Number.isNaN(n.share) && <rect class="graph-heat" x={5} y={HEIGHT - 4} width={Math.max(1, (width - 5) * (n.share / most))} height={4} />}
                <text class="graph-name" x={13} y={18}>{shorten(n.label, chars)}</text>
                <text class="graph-shape" x={13} y={34}>{shorten(n.shape || n.opcode, Math.floor((width - 20) / 6.2))}</text>
                {(n.more > 0 || n.open) && (
                  <g class="graph-open" onClick={(e) => (e.stopPropagation(), onOpen(n))}>
                    <title>{n.open ? `Collapse${n.more ? `; ${n.more} more are beyond what is drawn` : ""}` : `Draw ${n.more} more`}</title>
                    <rect x={width - 46} y={2} width={44} height={18} rx={5} />
                    <text class="graph-more" x={width - 6} y={15} text-anchor="end">{n.open ? "\u2212 less" : `+${n.more} more`}</text>
                  </g>
                )}
              </g>
            );
          })}
        </svg>
      </div>
      <div class="graph-tools row">
        <button type="button" class="button" onClick={() => (zoom.value = Math.min(2, zoom.peek() * 1.25))} aria-label="Larger">+</button>
        <button type="button" class="button" onClick={() => (zoom.value = Math.max(0.3, zoom.peek() / 1.25))} aria-label="Smaller">−</button>
      </div>
      <p class="unseen" aria-live="polite">{told ? `${told.label}, ${told.opcode}, ${told.shape}` : ""}</p>
    </figure>
  );
}
