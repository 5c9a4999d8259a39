// A picture of the timeline in plain values, so that it can be handed to a worker.
import type { Ruler } from "../layout/ruler";
import type { Range, View } from "../model/view";
import type { Theme } from "./theme";

/** How a name is drawn. */
export interface Look {
  label: string;
  ink: number; // a pixel of its colour
  lit: boolean;
  width?: number; // of the label in pixels where text is as large as usual, once it was measured
}

export interface SceneLane {
  lane: number;
  begin: Float64Array; // ps from the slab's t0
  duration: Float64Array;
  name: Uint32Array; // index into the slab's names
  count: Float64Array | null;
  busyOf: Float64Array | null;
}

/** Rectangles of a line. */
export interface SceneSlab {
  t0: bigint;
  lanes: readonly SceneLane[];
  names: readonly Look[];
}

/** Values that hold until the next one. */
export interface SceneCurve {
  t0: bigint;
  t: Float64Array; // ps from t0
  v: Float64Array;
  low: number; // of all that is known
  high: number;
  from: number; // of the scale
  to: number;
}

export interface SceneRow {
  y: number; // from the top of all rows
  h: number;
  laneH: number;
  line: number; // < 0: a plane's heading
  pinned: boolean;
  slab: number; // number of what is to be drawn in it; 0: nothing yet
  curve?: SceneCurve | undefined; // in place of events
}

/** An event's place; y as of a row. */
export interface SceneBox {
  begin: bigint;
  end: bigint;
  y: number;
  h: number;
}

export interface Scene {
  view: View;
  width: number; // CSS pixels
  height: number;
  scale: number; // device pixels a CSS pixel
  unit: number; // how large text is (layout/unit.ts)
  scrollTop: number;
  rows: SceneRow[]; // in sight
  ruler: Ruler;
  session: Range;
  selected: SceneBox | null;
  hovered: SceneBox | null;
  area: (Range & { lines: ReadonlySet<number> | null }) | null; // no lines: all
  arrows: { from: bigint; fromY: number; to: bigint; toY: number }[];
  measured: Range | null;
  marks: readonly { at: bigint; note: string }[];
  cursorX: number | null;
  lasting: { least: number; most: number } | null; // ps: others stand back
  theme: Theme;
}
