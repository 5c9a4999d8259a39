// The captures of the project, as every page knows them: asked for once, and again when the server says
// that something has changed. Where captures are off nothing more is asked.
import { signal } from "@preact/signals";
import { Api, asProblem, isAbort, type Problem } from "../api/client";
import { endCapture, readCaptures, setContinuous, startCapture, takeSnapshot, type Capture, type Captures, type Refused, type Wanted } from "../api/captures";
import { watch } from "../api/events";
import { isOver } from "../model/captures";

const EVERY = 4000; // ms, where the server does not tell
const TICK = 500;
const SKEW = 2000; // clocks that differ by less are alike: a second is all that the header tells

export const captures = signal<Captures | null>(null);
export const capturesProblem = signal<Problem | null>(null);
/** The server's clock; it goes while a capture does. */
export const clock = signal(Date.now());
/** Those that this page saw at work: how they ended is news. */
export const watched = signal<ReadonlySet<string>>(new Set());

let api: Api | null = null;
let stop: AbortSignal | undefined; // of what is followed
let unwatch: (() => void) | null = null;
let ahead = 0; // of this browser's clock
let ticking: ReturnType<typeof setInterval> | undefined;

const tick = (): void => void (clock.value = Date.now() + ahead);

function see(got: Captures): void {
  captures.value = got;
  const going = got.captures.filter((c) => !isOver(c)).map((c) => c.id);
  if (going.some((id) => !watched.peek().has(id))) watched.value = new Set([...watched.peek(), ...going]);
  clearInterval(ticking);
  ticking = going.length > 0 ? setInterval(tick, TICK) : undefined;
  tick();
}

/** Of answers that cross, the one that was asked for last counts. */
let turn = 0;

async function read(of: Api): Promise<void> {
  const mine = ++turn;
  try {
    const { body, at } = await readCaptures(of, stop);
    if (of !== api || mine !== turn) return;
    const differ = at - Date.now();
    ahead = Math.abs(differ) > SKEW ? differ : 0;
    capturesProblem.value = null;
    see(body);
    if (body.enabled) follow(of);
  } catch (e) {
    if (!isAbort(e) && of === api && mine === turn) capturesProblem.value = asProblem(e);
  }
}

/** Whichever answer says first that captures are on: the first one may have failed. */
function follow(of: Api): void {
  if (unwatch) return;
  let version = "";
  const look = (): void => void read(of);
  const told = (data: string): void => {
    if (data !== version) look();
    version = data;
  };
  unwatch = watch(of.url("events"), { captures: told }, look, EVERY);
}

export function refreshCaptures(): void {
  if (api) void read(api);
}

/** While pages of the project are shown. Returns what ends it. */
export function followCaptures(root: string): () => void {
  const mine = new Api(root);
  const abort = new AbortController();
  unwatch?.();
  unwatch = null;
  api = mine;
  stop = abort.signal;
  captures.value = null;
  capturesProblem.value = null;
  watched.value = new Set();
  void read(mine);
  return () => {
    abort.abort();
    clearInterval(ticking);
    if (api !== mine) return; // another project is followed by now
    unwatch?.();
    unwatch = null;
    api = null;
  };
}

/** What a change answered is known before the list tells it. */
function put(c: Capture): Capture {
  const now = captures.peek();
  if (now) see({ ...now, captures: [c, ...now.captures.filter((x) => x.id !== c.id)] });
  refreshCaptures();
  return c;
}

const mine = (): Api => {
  if (!api) throw new Error("no project");
  return api;
};

export const start = async (wanted: Wanted): Promise<Capture> => put(await startCapture(mine(), wanted));

export const end = async (id: string, drop: boolean): Promise<Capture> => put(await endCapture(mine(), id, drop));

export const snapshot = async (targets?: string[]): Promise<Capture> => put(await takeSnapshot(mine(), targets));

/** Those that did not do it. */
export async function record(targets: string[], on: boolean, device = 1): Promise<Refused[]> {
  const got = await setContinuous(mine(), targets, on, device);
  const now = captures.peek();
  if (now) see({ ...now, continuous: got.continuous });
  refreshCaptures();
  return got.failed;
}

export function dismiss(id: string): void {
  const next = new Set(watched.peek());
  next.delete(id);
  watched.value = next;
}
