// The state of a tool's page as its query string. What one tool does not know it hands on: the
// chosen op, the hosts and the window follow from tool to tool.
import type { Int } from "../api/json";
import { big } from "../api/json";
import { emptyTrace, formatTrace } from "./url";
import { TIMELINE } from "./tools";

export interface ToolUrl {
  run: string;
  hosts: string[]; // none: all
  op: string; // chosen everywhere
  program: string; // of the op
  t: string; // window of the timeline, as it is there
  q: string; // filter of the first table
  sort: string; // of the first table
  args: Record<string, string>; // what else stands there: the tool's own arguments and view
}

const KNOWN = new Set(["run", "host", "op", "program", "t", "q", "sort"]);
/** What the timeline keeps in its address and no tool wants. */
const TIMELINE_ONLY = new Set(["sel", "a", "ar", "fold", "flat", "top", "find", "pin", "hide", "m", "bm"]);

export function parseTool(search: string): ToolUrl {
  const p = new URLSearchParams(search);
  const args: Record<string, string> = {};
  for (const [k, v] of p) if (!KNOWN.has(k) && !TIMELINE_ONLY.has(k)) args[k] = v;
  const get = (k: string): string => p.get(k) ?? "";
  return {
    run: get("run"), hosts: p.getAll("host").filter(Boolean), op: get("op"), program: get("program"),
    t: get("t"), q: get("q"), sort: get("sort"), args,
  };
}

/** What a query may hold as it is; more readable than %2C and %3A. */
export function encode(text: string): string {
  return encodeURIComponent(text).replace(/%(2C|3A|2F|40|3E|3C)/g, (c) => decodeURIComponent(c));
}

export function formatTool(s: ToolUrl): string {
  const parts = [`run=${encode(s.run)}`, ...s.hosts.map((h) => `host=${encode(h)}`)];
  for (const k of ["op", "program", "t", "q", "sort"] as const) if (s[k]) parts.push(`${k}=${encode(s[k])}`);
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
  begin: Int | null;
  duration?: Int | null;
}

/** The timeline at an occurrence, its other occurrences lit. */
export function timelineHref(root: string, s: ToolUrl, o: Occurrence): string {
  const host = o.host ?? s.hosts[0] ?? "";
  let t = null;
  if (o.begin !== null) {
    const begin = big(o.begin);
    const length = o.duration ? big(o.duration) : 0n;
    const air = length > 0n ? length * 3n : 500_000n;
    t = { t0: begin - air, t1: begin + length + air };
  }
  const op = o.op ?? "";
  let href = formatTrace({ ...emptyTrace, run: s.run, host, t, q: op && quoted(op) });
  if (op) href += `&op=${encode(op)}`;
  if (op && o.program) href += `&program=${encode(o.program)}`;
  return `${root}${TIMELINE}${href}`;
}

function quoted(text: string): string {
  return /[\s:"<>-]/.test(text) ? `"${text.replaceAll('"', " ")}"` : text;
}
