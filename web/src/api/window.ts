// proto/window.proto -> columns ready to draw.
import { packedIds, packedNumbers, Wire, zigzag } from "./wire";

/** Rectangles of one lane in order of time; times in ps relative to the window's t0. */
export interface Lane {
  line: number;
  lane: number;
  events: number;
  hidden: number;
  busy: number;
  begin: Float64Array;
  duration: Float64Array;
  name: Uint32Array; // index into the window's names
  id: Float64Array | BigUint64Array;
  count: Float64Array | null; // null: all 1
  busyOf: Float64Array | null; // ps behind a rectangle; only with count
}

export interface Window {
  t0: bigint;
  t1: bigint;
  px: number;
  names: string[];
  lanes: Lane[];
  events: number;
  hidden: number;
  mergePx: number;
  loading: boolean;
  bytesDone: number;
  bytesTotal: number;
  planesDone: number;
  planesTotal: number;
  partial: boolean;
  damage: string;
  rowsCut: number; // rows left out at the end because they did not fit
}

const utf8 = new TextDecoder();
const NONE = new Uint8Array(0);

function column(got: Float64Array, n: number, what: string): Float64Array {
  if (got.length !== n) throw new Error(`window: ${n} rectangles, ${got.length} entries of ${what}`);
  return got;
}

/** Gaps between neighbours -> begins. */
function toBegins(gaps: Float64Array, durations: Float64Array): void {
  let at = 0;
  for (let i = 0; i < gaps.length; i++) {
    at += i === 0 ? zigzag(gaps[0]!) : gaps[i]!;
    gaps[i] = at;
    at += durations[i]!;
  }
}

/** Entries exist for merged rectangles only; spread them over all. */
function spreadBusy(packed: Uint8Array, count: Float64Array, duration: Float64Array): Float64Array {
  const got = packedNumbers(packed);
  const out = new Float64Array(count.length);
  let k = 0;
  for (let i = 0; i < count.length; i++) out[i] = count[i]! > 1 ? (got[k++] ?? 0) : duration[i]!;
  return out;
}

function decodeLane(buf: Uint8Array): Lane {
  const wire = new Wire(buf);
  const lane = { line: 0, lane: 0, events: 0, hidden: 0, busy: 0 };
  let begin: Uint8Array = NONE, duration: Uint8Array = NONE, name: Uint8Array = NONE;
  let id: Uint8Array = NONE, count: Uint8Array = NONE, busy: Uint8Array = NONE;
  while (wire.more()) {
    const tag = wire.unsigned();
    switch (tag) {
      case 0x08: lane.line = wire.unsigned(); break;
      case 0x10: lane.lane = wire.unsigned(); break;
      case 0x18: lane.events = wire.unsigned(); break;
      case 0x20: lane.hidden = wire.unsigned(); break;
      case 0x28: lane.busy = wire.unsigned(); break;
      case 0x32: begin = wire.bytes(); break;
      case 0x3a: duration = wire.bytes(); break;
      case 0x42: name = wire.bytes(); break;
      case 0x4a: id = wire.bytes(); break;
      case 0x52: count = wire.bytes(); break;
      case 0x5a: busy = wire.bytes(); break;
      default: wire.skip(tag % 8);
    }
  }
  const begins = packedNumbers(begin);
  const n = begins.length;
  const durations = column(packedNumbers(duration), n, "duration");
  toBegins(begins, durations);
  const ids = packedIds(id);
  if (ids.length !== n) throw new Error(`window: ${n} rectangles, ${ids.length} entries of id`);
  const counts = count.length ? column(packedNumbers(count), n, "count") : null;
  return {
    ...lane,
    begin: begins,
    duration: durations,
    name: Uint32Array.from(column(packedNumbers(name), n, "name")),
    id: ids,
    count: counts,
    busyOf: counts && spreadBusy(busy, counts, durations),
  };
}

export function decodeWindow(buf: Uint8Array): Window {
  const wire = new Wire(buf);
  const w: Window = {
    t0: 0n, t1: 0n, px: 0, names: [], lanes: [], events: 0, hidden: 0, mergePx: 1, loading: false,
    bytesDone: 0, bytesTotal: 0, planesDone: 0, planesTotal: 0, partial: false, damage: "", rowsCut: 0,
  };
  while (wire.more()) {
    const tag = wire.unsigned();
    switch (tag) {
      case 0x08: w.t0 = wire.bigSigned(); break;
      case 0x10: w.t1 = wire.bigSigned(); break;
      case 0x18: w.px = wire.unsigned(); break;
      case 0x22: w.names.push(utf8.decode(wire.bytes())); break;
      case 0x2a: w.lanes.push(decodeLane(wire.bytes())); break;
      case 0x30: w.events = wire.unsigned(); break;
      case 0x38: w.hidden = wire.unsigned(); break;
      case 0x40: w.mergePx = wire.unsigned(); break;
      case 0x48: w.loading = wire.unsigned() !== 0; break;
      case 0x50: w.bytesDone = wire.unsigned(); break;
      case 0x58: w.bytesTotal = wire.unsigned(); break;
      case 0x60: w.planesDone = wire.unsigned(); break;
      case 0x68: w.planesTotal = wire.unsigned(); break;
      case 0x72: w.partial = wire.unsigned() !== 0; break;
      case 0x7a: w.damage = utf8.decode(wire.bytes()); break;
      case 0x80: w.rowsCut = wire.unsigned(); break;
      default: wire.skip(tag % 8);
    }
  }
  checkNames(w);
  return w;
}

function checkNames(w: Window): void {
  for (const lane of w.lanes)
    for (const name of lane.name)
      if (name >= w.names.length) throw new Error(`window: name ${name} of ${w.names.length}`);
}

export function idAt(lane: Lane, i: number): string {
  return String(lane.id[i]);
}

/** Index of the rectangle with this id, or -1. */
export function indexOfId(lane: Lane, id: string): number {
  return lane.id instanceof Float64Array ? lane.id.indexOf(Number(id)) : lane.id.indexOf(BigInt(id));
}

export function laneBytes(lane: Lane): number {
  return lane.begin.length * (8 + 8 + 4 + 8 + (lane.count ? 16 : 0)) + 200;
}
