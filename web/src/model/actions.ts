// One occurrence of a collective between slices: its ops and actions in lanes, and what leads to what.
import { big, type Int } from "../api/json";
import type { EventDetails } from "../api/types";
import type { Cell, Table } from "../api/report";
import { asNumber } from "./units";

export interface Action {
  kind: string;
  name: string;
  after: number; // ps from the occurrence's begin
  duration: number; // NaN: only its begin or its end is known
  begin: Int | null;
  host: string;
  plane: string;
  facts: [string, string, Cell][]; // label, unit, value: what else is known
}

export interface Lane {
  kind: string;
  row: number; // the first of its rows
  rows: number;
}

/** In the order in which a transfer goes through them. */
const ORDER = ["send", "copy to host", "network send", "send-done", "recv", "network receive", "reduction", "copy to device", "recv-done", "all of it", "other"];

export function actionsOf(t: Table): Action[] {
  const at = new Map(t.columns.map((c, i) => [c.id, i]));
  const get = (row: readonly Cell[], id: string): Cell => row[at.get(id) ?? -1] ?? null;
  return t.rows.map((row) => {
    const begin = get(row, "first_begin_ps");
    return {
      kind: String(get(row, "kind") ?? "other"), name: String(get(row, "operation") ?? ""),
      after: asNumber(get(row, "after")) || 0, duration: asNumber(get(row, "duration")),
      begin: typeof begin === "number" || typeof begin === "bigint" ? begin : null,
      host: String(get(row, "first_host") ?? ""), plane: String(get(row, "first_plane") ?? ""),
      facts: ["bytes", "rate", "index", "detail"].flatMap((id): [string, string, Cell][] => {
        const c = t.columns[at.get(id) ?? -1];
        const v = get(row, id);
        return c && v !== null ? [[c.label, c.unit, v]] : [];
      }),
    };
  });
}

/** A lane a kind; those that overlap in it stand in rows of their own. Rows of all actions, in their order. */
export function lanesOf(actions: readonly Action[]): { lanes: Lane[]; row: number[]; rows: number } {
  const kinds = [...new Set(actions.map((a) => a.kind))].sort((a, b) => rank(a) - rank(b));
  const row = new Array<number>(actions.length).fill(0);
  const lanes: Lane[] = [];
  let next = 0;
  for (const kind of kinds) {
    const ends: number[] = [];
    const mine = actions.map((_, i) => i).filter((i) => actions[i]!.kind === kind).sort((a, b) => actions[a]!.after - actions[b]!.after || a - b);
    for (const i of mine) {
      const a = actions[i]!;
      let k = ends.findIndex((end) => end <= a.after);
      if (k < 0) k = ends.length < 40 ? ends.length : 39;
      ends[k] = a.after + (a.duration || 0);
      row[i] = next + k;
    }
    lanes.push({ kind, row: next, rows: ends.length });
    next += ends.length;
  }
  return { lanes, row, rows: next };
}

const rank = (kind: string): number => (ORDER.includes(kind) ? ORDER.indexOf(kind) : ORDER.length);

export interface ActionLink {
  from: number;
  to: number;
  basis: string;
}

export function linksOf(t: Table | undefined, n: number): ActionLink[] {
  const good = (v: number): boolean => Number.isInteger(v) && v >= 0 && v < n;
  return (t?.rows ?? []).map((r) => ({ from: asNumber(r[0]), to: asNumber(r[1]), basis: String(r[2] ?? "") })).filter((l) => good(l.from) && good(l.to));
}

/** The number of the device that it is of, as far as the event says. */
export function deviceOfPart(d: EventDetails): string {
  const told = d.args.find((a) => a.name === "local_device_id")?.value ?? "";
  return /^\/device:TPU:(\d+)$/.exec(d.plane_name)?.[1] ?? (/^\d{1,6}$/.test(String(told)) ? String(told) : "");
}

/** When an event that is a part of a transfer between slices begins, or ends if only its end was recorded; null: it is none. */
export function momentOfPart(d: EventDetails): bigint | null {
  const arg = (name: string): boolean => d.args.some((a) => a.name === name && a.value !== "");
  const name = d.display_name || d.name;
  const op = /^%?(send|recv)(-done)?(\.\d+)?$/.test(name) && /^\/device:TPU:\d+$/.test(d.plane_name);
  if (!op && !(arg("graph_key") && /Megascale|^\/host:CPU$/i.test(d.plane_name))) return null;
  return big(d.begin_ps) + (/ END$/.test(name) ? big(d.duration_ps) : 0n);
}
