// What this browser has uploaded: no list of the server's shows it, so the names are kept here. And
// what is on its way.
import { signal } from "@preact/signals";
import { Api, asProblem, isAbort, type Problem } from "../api/client";
import type { Progress } from "../api/types";
import { dropUpload, upload } from "../api/uploads";
import { go, here } from "../model/location";
import { startJob } from "./jobs";

export interface Kept {
  root: string;
  run: string;
  name: string;
  bytes: number;
  expires_ms: number;
}

export interface Going {
  id: number;
  name: string;
  bytes: number;
  received: number;
  problem: Problem | null;
  again: () => void;
  end: () => void;
}

const KEY = "xprofd.uploads";
const KEEP = 32;

export const isUpload = (run: string): boolean => /^upload-[0-9a-f]{32}$/.test(run);

function stored(): Kept[] {
  try {
    const v: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(v) ? (v as Kept[]).filter((k) => isUpload(k?.run ?? "") && k.expires_ms > Date.now()) : [];
  } catch {
    return []; // storage may be forbidden, or another's
  }
}

export const kept = signal<readonly Kept[]>(stored());
export const going = signal<readonly Going[]>([]);

function keep(list: readonly Kept[]): void {
  kept.value = list.slice(-KEEP);
  try {
    localStorage.setItem(KEY, JSON.stringify(kept.peek()));
  } catch {
    // known until the page is left
  }
}

export const forget = (run: string): void => keep(kept.peek().filter((k) => k.run !== run));

/** What the server says about how long it is there: each look at it makes that longer. */
export function prolong(run: string, expires_ms: number): void {
  if (kept.peek().some((k) => k.run === run && k.expires_ms !== expires_ms)) keep(kept.peek().map((k) => (k.run === run ? { ...k, expires_ms } : k)));
}

export async function remove(root: string, run: string): Promise<void> {
  try {
    await dropUpload(new Api(root), run);
  } catch (e) {
    if (asProblem(e).status !== 404) throw e;
  }
  forget(run);
}

let last = 0;

function change(id: number, to: Partial<Going>): void {
  going.value = going.peek().map((g) => (g.id === id ? { ...g, ...to } : g));
}

/** Sends a file; true when it is there as a run. */
async function bring(root: string, file: File): Promise<string> {
  const id = ++last;
  const abort = new AbortController();
  const progress = signal<Progress | null>(null);
  const end = (): void => {
    abort.abort();
    going.value = going.peek().filter((g) => g.id !== id);
  };
  const again = (): void => (end(), void takeFiles([file]));
  going.value = [...going.peek(), { id, name: file.name, bytes: file.size, received: 0, problem: null, again, end }];
  const ended = startJob("Upload", file.name, progress, end);
  try {
    const u = await upload(new Api(root), file, (now) => {
      change(id, { received: now.received });
      progress.value = { state: "decoding", bytes_done: now.received, bytes_total: now.bytes, events: 0, planes_done: 0, planes_total: 0, error: null };
    }, abort.signal);
    keep([...kept.peek(), { root, run: u.run, name: file.name, bytes: u.bytes, expires_ms: u.expires_ms }]);
    end();
    return u.run;
  } catch (e) {
    if (isAbort(e)) end();
    else change(id, { problem: asProblem(e) });
    return "";
  } finally {
    ended();
  }
}

/** One after the other; each becomes a run of its own. A single one is opened. */
export async function takeFiles(files: readonly File[]): Promise<void> {
  const { root } = here.peek();
  let run = "";
  for (const file of files) run = await bring(root, file);
  if (run) go(files.length === 1 ? `${root}overview_page?run=${run}` : root);
}
