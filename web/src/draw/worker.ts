// The timeline's canvas off the main thread: what painter.ts tells is kept and drawn here.
import { setUnit } from "../layout/unit";
import type { ToWorker } from "./painter";
import type { Look, SceneSlab } from "./scene";
import { Timeline } from "./timeline";

const looks: Look[] = [];
const slabs = new Map<number, SceneSlab>();
let timeline: Timeline | null = null;

self.onmessage = ({ data }: MessageEvent<ToWorker>): void => {
  if (data.canvas) timeline = new Timeline(data.canvas, (id) => slabs.get(id));
  for (const { n, ...look } of data.names) looks[n] = Object.assign(looks[n] ?? {}, look) as Look;
  for (const s of data.slabs)
    slabs.set(s.id, { t0: s.t0, lanes: s.lanes, names: Array.from(s.names, (n) => looks[n]!) });
  for (const id of data.forget) slabs.delete(id);
  if (!data.scene) return;
  setUnit(data.scene.unit);
  timeline?.draw(data.scene);
  self.postMessage(null);
};
