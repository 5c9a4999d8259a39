// A tree by weight: each box as wide as its share, below its parent. A click zooms in.
import { useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import { px as len, unit } from "../layout/unit";
import type { Tree } from "../api/report";
import { categorize, colourOf } from "../model/colour";
import { changeColour, changeOf, unusedOf, wasteColour } from "../model/hardware";
import { plural } from "../model/format";
import { palette } from "../model/theme";
import { countBelow, familyOf, icicle } from "../model/treemodel";
import { asNumber, show } from "../model/units";
import { useWidth } from "../widgets/size";
import { shorten } from "./xy";

const rowHeight = (): number => len(24);

function WasteScale() {
  return (
    <span class="waste-scale">
      hardware used
      <svg width="120" height="10" aria-hidden="true">{Array.from({ length: 24 }, (_, i) => <rect key={i} x={i * 5} y={0} width={5} height={10} fill={wasteColour(i / 23)} />)}</svg>
      unused
      <svg width="14" height="10" aria-hidden="true"><rect width="14" height="10" fill={wasteColour(NaN)} /></svg> not known
    </span>
  );
}

function ChangeScale() {
  return (
    <span class="waste-scale">
      less than in the base
      <svg width="120" height="10" aria-hidden="true">{Array.from({ length: 24 }, (_, i) => <rect key={i} x={i * 5} y={0} width={5} height={10} fill={changeColour(i / 11.5 - 1)} />)}</svg>
      more
      <svg width="14" height="10" aria-hidden="true"><rect width="14" height="10" fill={changeColour(NaN)} /></svg> not there
    </span>
  );
}

/** What colours say: what an op is called, how much of the hardware is unused, how much more or less it took than in the base. */
export function Icicle({ tree, weight, onChoose, isChosen, colour = "name" }: {
  tree: Tree; weight: number; onChoose?: (i: number) => void; isChosen: (i: number) => boolean; colour?: "name" | "waste" | "change";
}) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box, 900);
  const root = useSignal(-1);
  const hover = useSignal(-1);
  const family = useMemo(() => familyOf(tree), [tree]);
  const slabs = useMemo(() => icicle(tree, family, weight, root.value, 1.2 / width.value), [tree, weight, root.value, width.value]);
  const narrow = useMemo(() => countBelow(tree, family, weight, root.value >= 0 ? [root.value] : family.roots), [tree, weight, root.value]) - slabs.length;
  const depth = slabs.reduce((a, s) => Math.max(a, s.depth), 0) + 1;
  const colours = palette.value;
  const column = tree.columns[weight]!;
  const path: number[] = [];
  for (let at = root.value; at >= 0; at = tree.nodes[at]!.parent) path.unshift(at);
  const whole = slabs.filter((s) => s.depth === 0).reduce((a, s) => a + (asNumber(tree.nodes[s.node]!.values[weight]) || 0), 0);
  const here = hover.value >= 0 ? tree.nodes[hover.value] : undefined;
  const hereSlab = slabs.find((s) => s.node === hover.value);

  const keys = (e: KeyboardEvent): void => {
    const i = slabs.findIndex((s) => s.node === hover.peek());
    const step: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1 };
    if (step[e.key]) {
      e.preventDefault();
      hover.value = slabs[Math.min(slabs.length - 1, Math.max(0, i + step[e.key]!))]?.node ?? -1;
    } else if (e.key === "Enter" && hover.peek() >= 0) pick(hover.peek());
    else if (e.key === "Escape" && root.peek() >= 0) root.value = tree.nodes[root.peek()]!.parent;
  };
  const pick = (i: number): void => {
    if (family.children[i]!.length) root.value = root.peek() === i ? tree.nodes[i]!.parent : i;
    onChoose?.(i);
  };
  return (
    <figure class="chart icicle" aria-label={`By ${column.label}`}>
      <p class="trail">
        <button type="button" class="link" onClick={() => (root.value = -1)}>All</button>
        {path.map((i) => <span key={i}> › <button type="button" class="link" onClick={() => (root.value = i)}>{tree.nodes[i]!.name}</button></span>)}
        {narrow > 0 && <span class="ago"> · {plural(narrow, "node")} too narrow to draw: a click zooms in</span>}
        {colour === "waste" && <WasteScale />}
        {colour === "change" && <ChangeScale />}
      </p>
      <div
        ref={box} class="plot" tabIndex={0} role="img" onKeyDown={keys} onPointerLeave={() => (hover.value = -1)}
        aria-label={`Boxes by ${column.label}. Left and right go through them, Enter zooms in, Escape out. The tree beside it says the same.`}
      >
        <svg width={width.value} height={depth * rowHeight()} aria-hidden="true">
          {slabs.map((s) => {
            const name = tree.nodes[s.node]!.name;
            const w = s.width * width.value;
            return (
              <g key={s.node} class={`slab ${isChosen(s.node) ? "chosen" : ""}`} onPointerMove={() => (hover.value = s.node)} onClick={() => pick(s.node)}>
                <rect x={s.x * width.value} y={s.depth * rowHeight()} width={Math.max(1, w - 1)} height={rowHeight() - 1.5} rx={2} fill={colour === "waste" ? wasteColour(unusedOf(tree, s.node)) : colour === "change" ? changeColour(changeOf(tree, s.node)) : colourOf(name, categorize(name, "device"), colours)} />
                {w > len(34) && <text class="slab-text" x={s.x * width.value + len(5)} y={s.depth * rowHeight() + len(16)}>{shorten(name, Math.floor((w - 8) / (6.9 * unit())))}</text>}
              </g>
            );
          })}
        </svg>
        {here && hereSlab && (
          <div class="chart-tip" role="status" style={{
            ...(hereSlab.x > 0.6 ? { right: `${Math.max(0, (1 - hereSlab.x - hereSlab.width) * width.value)}px` } : { left: `${hereSlab.x * width.value}px` }),
            top: `${(hereSlab.depth + 1) * rowHeight() + 4}px`,
          }}>
            <b>{shorten(here.name, 70)}</b>
            <dl>
              {whole > 0 && <div><dt>of what is shown</dt><dd>{show((asNumber(here.values[weight]) || 0) / whole, "fraction")}</dd></div>}
              {tree.columns.map((c, k) => here.values[k] !== null && here.values[k] !== undefined && c.type !== "text" && (
                <div key={c.id}><dt>{c.label}</dt><dd>{show(here.values[k], c.unit)}</dd></div>
              )).slice(0, 8)}
            </dl>
          </div>
        )}
      </div>
    </figure>
  );
}
