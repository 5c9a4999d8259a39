// Who draws the timeline: a worker where the browser can hand it the canvas, else this thread. Both
// draw the same scenes with the same code. A worker is told of a slab when it is first drawn.
import type { Name } from "../model/names";
import { type Slab, type Slabs } from "../model/slabs";
import type { Scene } from "./scene";
import { Timeline } from "./timeline";
import workerUrl from "./worker?worker&url";

/** A name for the worker: the first time with its label. */
export interface NameNews {
  n: number;
  label?: string;
  ink: number;
  lit: boolean;
}

export interface SlabNews {
  id: number;
  t0: bigint;
  names: Uint32Array; // their numbers
  lanes: Slab["lanes"];
}

export interface ToWorker {
  canvas?: OffscreenCanvas;
  names: NameNews[];
  slabs: SlabNews[];
  forget: number[];
  scene: Scene | null;
}

export interface Painter {
  /** False: not now, the last picture is still being drawn; again() will be called. */
  draw(scene: Scene): boolean;
  /** Colours, or which names are lit, have changed. */
  restyle(): void;
  stop(): void;
}

class Here implements Painter {
  private readonly timeline: Timeline;

  constructor(canvas: HTMLCanvasElement, slabs: Slabs) {
    this.timeline = new Timeline(canvas, (id) => slabs.get(id));
  }

  draw(scene: Scene): boolean {
    this.timeline.draw(scene);
    return true;
  }

  restyle(): void {}
  stop(): void {}
}

class There implements Painter {
  private readonly known = new Set<number>(); // slabs
  private readonly names = new Map<Name, number>();
  private fresh: NameNews[] = [];
  private busy = false;
  private late = false;

  constructor(
    private readonly worker: Worker,
    canvas: HTMLCanvasElement,
    private readonly slabs: Slabs,
    again: () => void,
    broken: () => void,
  ) {
    worker.onmessage = () => {
      this.busy = false;
      if (this.late) again();
      this.late = false;
    };
    worker.onerror = broken;
    worker.onmessageerror = broken;
    const offscreen = canvas.transferControlToOffscreen();
    worker.postMessage({ canvas: offscreen, names: [], slabs: [], forget: [], scene: null } satisfies ToWorker, [offscreen]);
  }

  private number(name: Name): number {
    let n = this.names.get(name);
    if (n === undefined) {
      n = this.names.size;
      this.names.set(name, n);
      this.fresh.push({ n, label: name.label, ink: name.ink, lit: name.lit });
    }
    return n;
  }

  private news(id: number): SlabNews[] {
    const slab = this.slabs.get(id);
    if (this.known.has(id) || !slab) return [];
    this.known.add(id);
    const lanes = slab.lanes.map((l) => ({ ...l, id: NO_IDS })); // not for drawing, and as large as the rest
    return [{ id, t0: slab.t0, names: Uint32Array.from(slab.names, (n) => this.number(n)), lanes }];
  }

  draw(scene: Scene): boolean {
    this.late = this.busy;
    if (this.busy) return false;
    const slabs = scene.rows.flatMap((r) => (r.slab ? this.news(r.slab) : []));
    const forget = [...this.known].filter((id) => !this.slabs.get(id));
    for (const id of forget) this.known.delete(id);
    this.busy = true;
    this.worker.postMessage({ names: this.fresh, slabs, forget, scene } satisfies ToWorker);
    this.fresh = [];
    return true;
  }

  restyle(): void {
    this.fresh = [...this.names].map(([name, n]) => ({ n, label: name.label, ink: name.ink, lit: name.lit }));
  }

  stop(): void {
    this.worker.terminate();
  }
}

const NO_IDS = new Float64Array(0);

let usable = typeof Worker === "function" && typeof HTMLCanvasElement.prototype.transferControlToOffscreen === "function";

interface Policies {
  trustedTypes?: { createPolicy(name: string, rules: { createScriptURL: (url: string) => string }): { createScriptURL(url: string): string } };
}

let policy: { createScriptURL(url: string): string } | undefined;

/** The one script address that is made here: of our own worker. */
function trusted(): string {
  policy ??= (window as Policies).trustedTypes?.createPolicy("worker", {
    createScriptURL: (url) => {
      if (url !== workerUrl) throw new TypeError("no script but the worker");
      return url;
    },
  });
  return policy ? policy.createScriptURL(workerUrl) : workerUrl;
}

/** again: draw once more; broken: the worker is none, and the canvas is lost: come with a new one. */
export function painterFor(canvas: HTMLCanvasElement, slabs: Slabs, again: () => void, broken: () => void): Painter {
  if (usable)
    try {
      return new There(new Worker(trusted(), { type: "module" }), canvas, slabs, again, () => {
        usable = false;
        broken();
      });
    } catch {
      usable = false; // a policy in front of ours forbids it
    }
  return new Here(canvas, slabs);
}
