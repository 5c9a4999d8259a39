// Busy shares of all devices of a run, from the report device_activity: rows of a picture.
import type { Report } from "../api/report";
import { big } from "../api/json";
import type { Range } from "./view";

export const LEVELS = 35;
export const ROWS_MAX = 256;

export interface StripRow {
  host: string;
  device: string; // "": all of the host's
  devices: number;
  busy: number; // 0 … 1
  least: { device: string; busy: number };
  levels: Float32Array; // 0 … LEVELS; < 0: not watched
}

export interface Strip extends Range {
  rows: StripRow[];
  hosts: number;
  devices: number;
  verdict: string;
  missing: string[];
}

function levelsOf(text: string): Float32Array {
  return Float32Array.from(text, (c) => (c === "." ? -1 : parseInt(c, 36)));
}

/** Several rows as one: the least busy of those that were watched, so that one that lags is seen among many. */
function joined(rows: readonly StripRow[], host: string, device: string): StripRow {
  const levels = new Float32Array(rows[0]!.levels.length).fill(-1);
  for (let c = 0; c < levels.length; c++) {
    const seen = rows.map((r) => r.levels[c]!).filter((x) => x >= 0);
    if (seen.length) levels[c] = Math.min(...seen);
  }
  const least = rows.map((r) => r.least).reduce((a, b) => (b.busy < a.busy ? b : a));
  return { host, device, devices: rows.reduce((n, r) => n + r.devices, 0), busy: rows.reduce((n, r) => n + r.busy, 0) / rows.length, least, levels };
}

function byHost(rows: readonly StripRow[]): StripRow[] {
  const hosts = new Map<string, StripRow[]>();
  for (const r of rows) hosts.set(r.host, [...(hosts.get(r.host) ?? []), r]);
  return [...hosts].map(([host, of]) => joined(of, host, ""));
}

/** No more rows than fit: devices, else hosts, else neighbouring hosts together. */
export function stripOf(r: Report): Strip | null {
  const at = (id: string): bigint | null => {
    const v = r.metrics.find((m) => m.id === id)?.value;
    return v === null || v === undefined ? null : big(v as number);
  };
  const [t0, t1] = [at("activity_begin"), at("activity_end")];
  const table = r.tables.find((t) => t.id === "devices");
  if (!table || t0 === null || t1 === null || t0 >= t1) return null;
  const all = table.rows.map(([host, device, busy, levels]): StripRow => ({
    host: String(host), device: String(device), devices: 1, busy: Number(busy), least: { device: String(device), busy: Number(busy) }, levels: levelsOf(String(levels)),
  }));
  const hosts = new Set(all.map((x) => x.host)).size;
  let rows = all.length <= ROWS_MAX ? all : byHost(all);
  if (rows.length > ROWS_MAX) {
    const each = Math.ceil(rows.length / ROWS_MAX);
    rows = Array.from({ length: Math.ceil(rows.length / each) }, (_, i) => {
      const some = rows.slice(i * each, (i + 1) * each);
      return joined(some, some[0]!.host, "");
    });
  }
  return { t0, t1, rows, hosts, devices: all.length, verdict: r.verdict ?? "", missing: r.missing_hosts.map((m) => m.host) };
}
