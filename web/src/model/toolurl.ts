// The state of a tool's page as its query string. What one tool does not know it hands on: the
// chosen op, the hosts and the window follow from tool to tool.
import type { Int } from "../api/json";
import { big } from "../api/json";
import { emptyTrace, formatTrace, parseRange } from "./url";
import { TIMELINE } from "./tools";

export interface ToolUrl {
  run: string;
  hosts: string[]; // none: all
  op: string; // chosen everywhere
  program: string; // of the op
  t: string; // window of the timeline, as it is there
  range: string; // START..END: every page is about this time only
  steps: string; // 3, 3-5: about these steps only
  marker: string; // what a step is: a module, or an event of host threads; "": as the profile says
  base: string; // a run that every page is held against; "": none
  q: string; // filter of the first table
  sort: string; // of the first table
  args: Record<string, string>; // what else stands there: the tool's own arguments and view
}

const KNOWN = new Set(["run", "host", "op", "program", "t", "range", "steps", "step_marker", "base", "q", "sort"]);
/** What the timeline keeps in its address and no tool wants. */
const TIMELINE_ONLY = new Set(["sel", "a", "ar", "as", "off", "fold", "flat", "top", "find", "pin", "hide", "m", "bm", "curve", "with", "strip", "tips", "list", "order", "among", "drag", "dock", "palette"]);
/** Likewise of timelines beside it: fold.1 */
const BESIDE = /^(sel|a|ar|fold|flat|top|find|pin|hide|curve|list)\.\d$/;

export function parseTool(search: string): ToolUrl {
  const p = new URLSearchParams(search);
  const args: Record<string, string> = {};
  for (const [k, v] of p) if (!KNOWN.has(k) && !TIMELINE_ONLY.has(k) && !BESIDE.test(k)) args[k] = v;
  const get = (k: string): string => p.get(k) ?? "";
  return {
    run: get("run"), hosts: p.getAll("host").filter(Boolean), op: get("op"), program: get("program"),
    t: get("t"), range: parseRange(get("range")) ? get("range") : "", steps: parseSteps(get("steps")) ? get("steps") : "",
    marker: get("step_marker"), base: get("base"),
    q: get("q"), sort: get("sort"), args,
  };
}

/* --- what part of the run the pages are about: a time, or steps, never both --- */

export interface Steps {
  first: number;
  last: number;
}

export function parseSteps(text: string): Steps | null {
  const m = /^(\d{1,15})(?:-(\d{1,15}))?$/.exec(text);
  if (!m) return null;
  const [first, last] = [Number(m[1]), Number(m[2] ?? m[1])];
  return first <= last ? { first, last } : null;
}

/** Two steps in any order. */
export function formatSteps(a: number, b: number): string {
  const [first, last] = a < b ? [a, b] : [b, a];
  return first === last ? `${first}` : `${first}-${last}`;
}

export function formatRange(r: { t0: bigint; t1: bigint }): string {
  return `${r.t0}..${r.t1}`;
}

/** For the server: what part, and what its steps are. */
export function rangeArguments(s: ToolUrl): Record<string, string> {
  const marker: Record<string, string> = s.marker ? { step_marker: s.marker } : {};
  if (s.steps) return { steps: s.steps, ...marker };
  const r = parseRange(s.range);
  return r ? { t0: String(r.t0), t1: String(r.t1), ...marker } : marker;
}

/** The page's own arguments are no business of the server's. */
const OURS = /^(view|than|lasso|measure|arrows|cols|group|w|axis|unit|sums|colour|one|other|versus|versus_run|t0|t1|q\..*|sort\..*|cols\..*|group\..*)$/;

export function toolArguments(s: ToolUrl): Record<string, string> {
  return Object.fromEntries(Object.entries(s.args).filter(([k]) => !OURS.test(k)));
}

/** For an address that another part of the page writes. */
export function rangeQuery(s: Pick<ToolUrl, "range" | "steps"> & { marker?: string; base?: string }): string {
  const marker = (s.marker ? `&step_marker=${encode(s.marker)}` : "") + (s.base ? `&base=${encode(s.base)}` : "");
  return marker + (s.steps ? `&steps=${s.steps}` : s.range ? `&range=${s.range}` : "");
}

/** Compare, with the run on its first side; steps stay what they are. */
export function compareHref(root: string, run: string, search: string): string {
  const marker = new URLSearchParams(search).get("step_marker") ?? "";
  const query = `${run && `&a=${encode(run)}`}${rangeQuery({ range: "", steps: "", marker })}`;
  return `${root}compare${query && `?${query.slice(1)}`}`;
}

/** What a query may hold as it is; more readable than %2C and %3A. */
export function encode(text: string): string {
  return encodeURIComponent(text).replace(/%(2C|3A|2F|40|3E|3C)/g, (c) => decodeURIComponent(c));
}

export function formatTool(s: ToolUrl): string {
  const parts = [`run=${encode(s.run)}`, ...s.hosts.map((h) => `host=${encode(h)}`)];
  for (const k of ["op", "program", "t", "range", "steps", "q", "sort"] as const) if (s[k]) parts.push(`${k}=${encode(s[k])}`);
  if (s.marker) parts.push(`step_marker=${encode(s.marker)}`);
  if (s.base) parts.push(`base=${encode(s.base)}`);
  for (const [k, v] of Object.entries(s.args)) if (v !== "") parts.push(`${encodeURIComponent(k)}=${encode(v)}`);
  return `?${parts.join("&")}`;
}

/** The same run, hosts, op and window on another page. */
export function elsewhere(s: ToolUrl, more: Partial<ToolUrl> = {}): string {
  return formatTool({ ...s, q: "", sort: "", args: {}, ...more });
}

export function toolHref(root: string, tool: string, s: ToolUrl): string {
  if (tool !== TIMELINE) return root + tool + elsewhere(s);
  return `${root}${TIMELINE}${elsewhere({ ...s, hosts: s.hosts.slice(0, 1) })}`;
}

export interface Occurrence {
  host?: string; // of the profile; else the first that is chosen
  op?: string;
  program?: string;
  event?: string; // what to look for, where that is not the op's name
  begin: Int | null;
  duration?: Int | null;
  window?: boolean; // it is a stretch of time to look into, not an event to look at
}

/** The timeline at an occurrence, its other occurrences lit. */
export function timelineHref(root: string, s: ToolUrl, o: Occurrence): string {
  const host = o.host ?? s.hosts[0] ?? "";
  let t = null;
  if (o.begin !== null) {
    const begin = big(o.begin);
    const length = o.duration ? big(o.duration) : 0n;
    const air = length > 0n ? (o.window ? length / 20n : length * 3n) : 500_000n;
    t = { t0: begin - air, t1: begin + length + air };
  }
  const op = o.op ?? "";
  let href = formatTrace({ ...emptyTrace, run: s.run, host, t, q: o.event || op ? quoted(o.event || op) : "" });
  if (op) href += `&op=${encode(op)}`;
  if (op && o.program) href += `&program=${encode(o.program)}`;
  href += rangeQuery(s);
  return `${root}${TIMELINE}${href}`;
}

function quoted(text: string): string {
  return /[\s:"<>-]/.test(text) ? `"${text.replaceAll('"', " ")}"` : text;
}
