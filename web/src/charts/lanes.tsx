// Actions in lanes over time, with lines from each to what it leads to.
import { useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import { px as len, unit } from "../layout/unit";
import { lanesOf, type Action, type ActionLink } from "../model/actions";
import { show } from "../model/units";
import { useWidth } from "../widgets/size";
import { seriesColours } from "./colours";
import { linearAxis } from "./scale";
import { shorten } from "./xy";

const leftRoom = (): number => len(118);
const rightRoom = (): number => len(16);
const rowHeight = (): number => len(22);
const footRoom = (): number => len(36);

export function Lanes({ actions, links, title, onOpen }: { actions: readonly Action[]; links: readonly ActionLink[]; title: string; onOpen: (a: Action) => void }) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box, 760);
  const at = useSignal(-1);
  const { lanes, row, rows } = useMemo(() => lanesOf(actions), [actions]);
  const colours = useMemo(() => seriesColours(lanes.map((l) => l.kind)), [lanes]);
  const end = actions.reduce((m, a) => Math.max(m, a.after + (a.duration || 0)), 1);
  const [inset, tall] = [leftRoom(), rowHeight()];
  const inner = Math.max(60, width.value - inset - rightRoom());
  const axis = linearAxis(0, end, "ps", Math.max(2, Math.floor(inner / len(110))));
  const x = (t: number): number => inset + (t / end) * inner;
  const y = (r: number): number => 6 + r * tall;
  const height = rows * tall + 6;
  const order = useMemo(() => actions.map((_, i) => i).sort((a, b) => actions[a]!.after - actions[b]!.after || a - b), [actions]);
  const here = actions[at.value];
  const lane = (i: number): number => lanes.findIndex((l) => l.kind === actions[i]!.kind);
  const keys = (e: KeyboardEvent): void => {
    const by = e.key === "ArrowRight" || e.key === "ArrowDown" ? 1 : e.key === "ArrowLeft" || e.key === "ArrowUp" ? -1 : 0;
    if (by) at.value = order[Math.min(order.length - 1, Math.max(0, at.peek() < 0 ? 0 : order.indexOf(at.peek()) + by))] ?? -1;
    else if (e.key === "Enter" && here) onOpen(here);
    else if (e.key === "Escape" && at.peek() >= 0) at.value = -1;
    else return;
    e.preventDefault();
  };
  return (
    <figure class="chart lanes" aria-label={title}>
      <div
        ref={box} class="plot lanes-plot" tabIndex={0} role="img" onKeyDown={keys} onPointerLeave={() => (at.value = -1)}
        aria-label={`${title}: ${actions.length} ops and actions in ${show(end, "ps")}. Arrow keys go through them, Enter opens the timeline there; the table of actions says the same.`}
      >
        <svg width={width.value} height={height + footRoom()} aria-hidden="true">
          {axis.ticks.filter((t) => t.at <= end).map((t) => (
            <g key={t.at}>
              <line class="grid" x1={x(t.at)} x2={x(t.at)} y1={2} y2={height} />
              <text class="tick" x={x(t.at)} y={height + len(15)} text-anchor="middle">{t.text}</text>
            </g>
          ))}
          {lanes.map((l, k) => (
            <g key={l.kind}>
              {k > 0 && <line class="lane-rule" x1={0} x2={inset + inner} y1={y(l.row) - 1} y2={y(l.row) - 1} />}
              <text class="tick" x={inset - len(10)} y={y(l.row) + tall / 2 + len(3)} text-anchor="end">{l.kind}</text>
            </g>
          ))}
          {actions.map((a, i) => {
            const wide = Number.isNaN(a.duration) ? 0 : Math.max(3, x(a.after + a.duration) - x(a.after));
            const [left, top] = [x(a.after), y(row[i]!)];
            return (
              <g key={i} class="lane-action" onPointerMove={() => (at.value = i)} onClick={() => onOpen(a)}>
                {wide === 0
                  ? <path d={`M${left} ${top + 3}l5 ${tall / 2 - 4}-5 ${tall / 2 - 4}-5-${tall / 2 - 4}Z`} fill={colours[lane(i)]} />
                  : <rect x={left} y={top + 2} width={wide} height={tall - 5} rx={2} fill={colours[lane(i)]} />}
                {wide > len(46) && <text class="slab-text" x={left + len(6)} y={top + tall / 2 + len(3.5)}>{shorten(a.name, Math.floor((wide - len(10)) / (7 * unit())))}</text>}
                {i === at.value && <rect class="heat-cursor" x={left - (wide ? 1 : 6)} y={top + 1} width={wide ? wide + 2 : 12} height={tall - 3} rx={3} />}
              </g>
            );
          })}
          {links.map((l, k) => {
            const [a, b] = [actions[l.from]!, actions[l.to]!];
            const [x1, y1] = [x(a.after + (a.duration || 0)), y(row[l.from]!) + tall / 2];
            const into = x(b.after) < x1 && !Number.isNaN(b.duration) ? Math.min(x1, x(b.after + b.duration)) : x(b.after);
            const [x2, y2] = [into, y(row[l.to]!) + (y(row[l.to]!) > y1 ? 2 : tall - 3)];
            const lit = at.value < 0 || at.value === l.from || at.value === l.to;
            const down = y2 > y1 ? 1 : -1;
            const mid = (y1 + y2) / 2;
            return (
              <g key={k} class={lit ? "torus-arrow" : "torus-arrow dim"}>
                <path class="torus-edge" d={`M${x1} ${y1}C${x1 + 14} ${mid} ${x2} ${mid} ${x2} ${y2 - down * 5}`} stroke-width={1.2} />
                <path class="torus-head" d={`M${x2} ${y2}l-3.5 ${-down * 6}h7Z`} />
              </g>
            );
          })}
          <text class="axis" x={inset} y={height + len(31)}>{`Since it began, ${axis.title}`}</text>
        </svg>
        {here && (
          <div class="chart-tip" role="status" style={{ ...(x(here.after) > width.value / 2 ? { right: `${Math.max(4, width.value - x(here.after) + 8)}px` } : { left: `${Math.min(width.value - 180, x(here.after) + 14)}px` }), top: `${Math.min(Math.max(0, height - 60), y(row[at.value]!) + tall)}px` }}>
            <b>{shorten(here.name, 60)}</b>
            <dl>
              <div><dt>{here.kind}</dt><dd>{Number.isNaN(here.duration) ? "only one end recorded" : show(here.duration, "ps")}</dd></div>
              <div><dt>after</dt><dd>{show(here.after, "ps")}</dd></div>
              {here.facts.map(([label, u, v]) => <div key={label}><dt>{label}</dt><dd>{shorten(show(v, u), 44)}</dd></div>)}
              {links.filter((l) => l.from === at.value || l.to === at.value).slice(0, 4).map((l, k) => (
                <div key={`l${k}`}><dt>{l.from === at.value ? "leads to" : "follows"}</dt><dd>{shorten(actions[l.from === at.value ? l.to : l.from]!.name, 30)}</dd></div>
              ))}
            </dl>
          </div>
        )}
      </div>
    </figure>
  );
}
