// What surrounds an op, drawn here: boxes in layers, operands above, users below; ops that are open hold what they call.
import { useSignal } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { categorize, colourOf } from "../model/colour";
import { drawnEdges, layoutLabel, type GraphEdge, type GraphNode } from "../model/graph";
import { palette } from "../model/theme";
import { show } from "../model/units";
import { GAP_Y } from "./layered";
import { nested } from "./nested";
import { shorten } from "./xy";

const HEIGHT = 46;
const MAX_WIDTH = 250;
const LABELLED = 24; // more between layers where layouts stand at edges
const SIGNS = { added: "+", removed: "\u2212", changed: "\u2260" } as const;
const WORDS = { added: "only in this program", removed: "only in the other program", changed: "another in the other program" } as const;

/** Two arrows past each other: a layout changes. */
const SWAP = "M0 2.5h8M5.5 0 8 2.5 5.5 5M10 7.5H2M4.5 5 2 7.5 4.5 10";

export interface GraphActions {
  choose: (n: GraphNode) => void;
  grow: (n: GraphNode) => void; // more of its neighbours
  shrink: (n: GraphNode) => void;
  look: (n: GraphNode) => void; // inside, or no longer
}

export function GraphView({ nodes, edges, chosen, act, title }: { nodes: readonly GraphNode[]; edges: readonly GraphEdge[]; chosen: string; act: GraphActions; title: string }) {
  const box = useRef<HTMLDivElement>(null);
  const zoom = useSignal(1);
  const focused = useSignal(""); // by id: the nodes change where one is expanded or collapsed
  const walk = useRef<string[]>([]); // what Left and Right go through: the operands, or users, that one of was come to
  const colours = palette.value;
  const shown = useMemo(() => drawnEdges(nodes, edges), [nodes, edges]);
  const widths = useMemo(
    () => nodes.map((n) => Math.min(MAX_WIDTH, Math.max(96, buttons(n) + 22 + 7.2 * Math.max(n.id.length + (n.mark ? 2 : 0), Math.min(30, n.shape.length) * 0.86)))),
    [nodes],
  );
  const at = useMemo(
    () => nested(widths, HEIGHT, nodes.map((n) => n.within), edges.filter((_, i) => shown[i]), GAP_Y + (edges.some((e) => e.changes) ? LABELLED : 0)),
    [nodes, edges],
  );
  const middle = nodes.findIndex((n) => n.id === chosen);
  const focus = focused.value === "" ? -1 : nodes.findIndex((n) => n.id === focused.value);
  const most = nodes.reduce((m, n) => (Number.isNaN(n.share) ? m : Math.max(m, n.share)), 1e-12);

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
      : nodes.map((_, i) => i).filter((i) => at.layer[i] === at.layer[now] && nodes[i]!.within === nodes[now]!.within).sort((a, b) => at.x[a]! - at.x[b]!);
    see(row[(row.indexOf(now) + by + row.length) % row.length]!);
  };
  const keys = (e: KeyboardEvent): void => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const now = focus >= 0 ? focus : Math.max(0, middle);
    const n = nodes[now];
    if (!n) return;
    if (e.key === "ArrowUp") step(edges.filter((x) => x.to === now).map((x) => x.from));
    else if (e.key === "ArrowDown") step(edges.filter((x) => x.from === now).map((x) => x.to));
    else if (e.key === "ArrowLeft") aside(now, -1);
    else if (e.key === "ArrowRight") aside(now, 1);
    else if (e.key === "Enter") act.choose(n);
    else if (e.key === " " || e.key === "e") void (n.more > 0 ? act.grow(n) : n.open && act.shrink(n));
    else if (e.key === "Backspace") void (n.open && act.shrink(n));
    else if (e.key === "o") void (n.inner > 0 ? act.look(n) : n.within >= 0 && act.look(nodes[n.within]!));
    else if (e.key === "+" || e.key === "=") zoom.value = Math.min(2, zoom.peek() * 1.2);
    else if (e.key === "-") zoom.value = Math.max(0.3, zoom.peek() / 1.2);
    else return;
    e.preventDefault();
  };
  // Labels stand at the right of the arrow's head; of several into one node each above the one before.
  const rank = useMemo(() => {
    const into = new Map<number, number>();
    return edges.map((e, i) => {
      if (!shown[i] || !e.changes) return 0;
      const k = into.get(e.to) ?? 0;
      into.set(e.to, k + 1);
      return k;
    });
  }, [edges, shown]);
  const labels = useMemo(() => edges.map((e, i) => (shown[i] ? layoutLabel(e) : [])), [edges, shown]);
  const reach = edges.reduce((m, e, i) => labels[i]!.reduce((k, l) => Math.max(k, at.x[e.to]! + 24 + 5.9 * l.length), m), at.width);
  const w = reach + 40;
  const h = at.height + 40;
  const told = nodes[focus];
  const held = useMemo(() => {
    const count = new Array<number>(nodes.length).fill(0);
    for (const n of nodes) if (n.within >= 0 && n.mark !== "removed") count[n.within]!++;
    return count;
  }, [nodes]);
  const card = (n: GraphNode, i: number) => <Card key={`${n.within} ${n.id} ${i}`} n={n} held={held[i]!} x={at.x[i]!} y={at.y[i]!} width={at.w[i]!} height={at.h[i]!} chosen={n.id === chosen} focus={i === focus} most={most} fill={colourOf(n.opcode || n.id, categorize(n.opcode || n.id, "device"), colours)} act={act} onFocus={(id) => (focused.value = id)} />;
  return (
    <figure class="chart graph" aria-label={title}>
      <div class="graph-stage">
        <div
          ref={box} class="graph-box" tabIndex={0} role="application" onKeyDown={keys}
          aria-label={`${title}: ${nodes.length} ops. Up: operands, down: users, left and right: the others of these, Enter: choose, space: more of its neighbours, or fewer, O: look inside of it, or close it, plus and minus: zoom.`}
        >
          <svg width={w * zoom.value} height={h * zoom.value} viewBox={`-20 -20 ${w} ${h}`} aria-hidden="true">
            <defs>
              <marker id="graph-tip" viewBox="0 0 8 8" refX="7" refY="4" markerUnits="userSpaceOnUse" markerWidth="9" markerHeight="9" orient="auto"><path d="M0 0.5 8 4 0 7.5Z" class="graph-arrow" /></marker>
            </defs>
            {nodes.map((n, i) => [n, i] as const).filter(([n]) => n.opened).map(([n, i]) => card(n, i))}
            {edges.map((e, i) => {
              if (!shown[i]) return null;
              const x0 = at.x[e.from]!;
              const y0 = at.y[e.from]! + at.h[e.from]!;
              const x1 = at.x[e.to]!;
              const y1 = at.y[e.to]!;
              const bend = Math.max(14, (y1 - y0) / 2);
              const lit = e.from === focus || e.to === focus || (focus < 0 && (e.from === middle || e.to === middle));
              const looks = e.gone ? "gone" : e.kind === "control" ? "control" : !e.changes ? (e.copy ? "copy" : "") : e.changes === "memory" ? "memory" : "layout";
              const label = labels[i]!;
              return (
                <g key={i}>
                  <path class={`graph-edge ${lit ? "lit" : ""} ${looks}`} d={`M${x0} ${y0}C${x0} ${y0 + bend} ${x1} ${y1 - bend} ${x1} ${y1 - 1}`} marker-end="url(#graph-tip)" />
                  {e.times > 1 && <text class="graph-label" x={x1 + 6} y={y1 - 4}>{`\u00d7 ${e.times}`}</text>}
                  {label.length > 0 && (
                    <g class={`graph-change ${looks}`} transform={`translate(${x1 + 8} ${y1 - 12 - 11 * (label.length - 1) - 23 * rank[i]!})`}>
                      <title>{`Layout: ${e.changes}\n${e.fromLayout}\n\u2192 ${e.toLayout}`}</title>
                      <path class="graph-swap" d={SWAP} transform="translate(0 -8.5)" />
                      {label.map((l, k) => <text key={k} class="graph-label" x={14} y={11 * k}>{l}</text>)}
                    </g>
                  )}
                </g>
              );
            })}
            {nodes.map((n, i) => (n.opened ? null : card(n, i)))}
          </svg>
        </div>
        <div class="graph-tools row">
          <button type="button" class="button" onClick={() => (zoom.value = Math.min(2, zoom.peek() * 1.25))} aria-label="Larger">+</button>
          <button type="button" class="button" onClick={() => (zoom.value = Math.max(0.3, zoom.peek() / 1.25))} aria-label="Smaller">−</button>
        </div>
      </div>
      <p class="ago graph-hint" aria-hidden="true"><kbd>←</kbd> <kbd>→</kbd> <kbd>↑</kbd> <kbd>↓</kbd> walk along operands and users · <kbd>Enter</kbd> choose · <kbd>Space</kbd> more neighbours, or fewer · <kbd>O</kbd> look inside, or close · <kbd>+</kbd> <kbd>−</kbd> zoom</p>
      <p class="unseen" aria-live="polite">{told ? tell(told, nodes) : ""}</p>
    </figure>
  );
}

const tell = (n: GraphNode, nodes: readonly GraphNode[]): string =>
  [`${n.id}, ${n.opcode}, ${n.shape}`, n.within >= 0 ? `inside of ${nodes[n.within]!.id}` : "", n.mark ? WORDS[n.mark] : "", n.opened ? "open" : n.inner > 0 ? `${n.inner} ops inside` : ""].filter(Boolean).join(", ");

/** Pixels that the buttons of a node take. */
const buttons = (n: GraphNode): number => (n.more > 0 ? 48 + 6.5 * String(n.more).length : 0) + (n.open ? 18 : 0) + (n.inner > 0 ? 24 : 0);

function Card({ n, held, x, y, width, height, chosen, focus, most, fill, act, onFocus }: {
  n: GraphNode; held: number; x: number; y: number; width: number; height: number; chosen: boolean; focus: boolean; most: number; fill: string; act: GraphActions; onFocus: (id: string) => void;
}) {
  const known = !Number.isNaN(n.share);
  const sign = n.mark ? `${SIGNS[n.mark]} ` : "";
  const part = n.opened && held < n.inner ? `  ${held} of ${n.inner} ops` : "";
  const name = shorten(sign + n.id + part, Math.floor(((n.opened ? 420 : width) - buttons(n) - 18) / 7.2));
  // The name of what is wide stands in its middle, where one comes to, and its buttons beside it.
  const left = n.opened && width > 420 ? width / 2 - 3.6 * name.length : 13;
  const moves = n.mover !== "" || /^(copy|copy-start|transpose|reshape|bitcast-convert)$/.test(n.opcode);
  let right = n.opened ? Math.min(width - 4, left + 7.4 * name.length + buttons(n) + 8) : width - 4;
  const button = (text: string, tip: string, wide: number, go: () => void) => {
    right -= wide;
    return (
      <g class="graph-open" onClick={(e) => (e.stopPropagation(), go())}>
        <title>{tip}</title>
        <rect x={right} y={2} width={wide - 2} height={18} rx={5} />
        <text class="graph-more" x={right + wide / 2 - 1} y={15} text-anchor="middle">{text}</text>
      </g>
    );
  };
  const about = [
    n.id, `${n.opcode}${n.kind && ` (${n.kind})`} ${n.shape}`, known ? `${show(n.share, "fraction")} of the time` : "", n.computation && `in ${n.computation}`, n.more ? `${n.more} more neighbours` : "",
    n.inner ? `${n.inner} ops inside` : "", n.mover && `${n.mover} inside changes a layout`, n.mark ? `${WORDS[n.mark]}${n.what ? `: ${n.what}` : ""}` : "",
  ];
  return (
    <g
      class={`graph-node ${n.opened ? "cluster" : ""} ${chosen ? "chosen" : ""} ${focus ? "focus" : ""} ${moves ? "layout" : ""} ${n.mark ?? ""}`}
      transform={`translate(${x - width / 2} ${y})`} onClick={() => act.choose(n)} onPointerEnter={() => onFocus(n.id)} onPointerLeave={() => onFocus("")}
    >
      <title>{about.filter(Boolean).join("\n")}</title>
      <rect class="graph-card" width={width} height={height} rx={6} />
      {known && !chosen && !n.opened && <rect class="graph-warm" width={width} height={height} rx={6} style={{ fillOpacity: (0.34 * n.share) / most }} />}
      <rect class="graph-hue" width={5} height={height} rx={2} fill={fill} />
      {known && <rect class="graph-heat" x={5} y={height - 4} width={Math.max(1, (width - 5) * (n.share / most))} height={4} />}
      <text class={`graph-name ${n.mark ?? ""}`} x={left} y={18}>{name}</text>
      {!n.opened && <text class="graph-shape" x={13} y={34}>{shorten(n.shape || n.opcode, Math.floor((width - (n.mover ? 36 : 20)) / 6.2))}</text>}
      {n.mover !== "" && !n.opened && <path class="graph-swap" d={SWAP} transform={`translate(${width - 16} 26)`} />}
      {n.inner > 0 && button(n.opened ? "\u2715" : "\u229e", n.opened ? "Close it" : `Look inside: ${n.inner} ops`, 24, () => act.look(n))}
      {n.more > 0 && button(`+${n.more} more`, `Draw more of its neighbours; ${n.more} are not drawn`, 48 + 6.5 * String(n.more).length, () => act.grow(n))}
      {n.open && button("\u2212", "Draw fewer of its neighbours (less)", 18, () => act.shrink(n))}
    </g>
  );
}
