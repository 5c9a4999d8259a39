// A run that the pages of another are held against (`base=` in the address): the same tables with what
// a row was there, matched by what it is, and by how much it changed.
import type { Cell, Column, Metric, Report, Table, Tree } from "../api/report";
import { matchInSteps, metricOf, moduleBase, opsOf, pairRows, type Match, type Op } from "./compare";
import { plural } from "./format";
import { opColumns, opOf, weightColumn } from "./ops";
import { familyOf } from "./treemodel";
import { asNumber, show, signed } from "./units";

/* --- how much of the base's time stands against this run's --- */

export interface Scale {
  cores: number; // of what happens on devices
  hosts: number; // of what host threads do
  words: string;
}

const plainScale: Scale = { cores: 1, hosts: 1, words: "as it was recorded" };

/** Of the overviews of both. `byTime`: this run's is about a stretch of time, in which steps may begin and end. */
export function scaleOf(now: Report | null, base: Report | null, byTime: boolean): Scale {
  if (!now || !base) return plainScale;
  const of = (r: Report, id: string): number => metricOf(r, id);
  const cores = (r: Report): number => Math.max(1, of(r, "cores") || 1);
  const hosts = (r: Report): number => Math.max(1, of(r, "hosts") || 1);
  const [a, b] = [of(base, "steps"), of(now, "steps")];
  if (!byTime && a > 0 && b > 0)
    return { cores: (b * cores(now)) / (a * cores(base)), hosts: (b * hosts(now)) / (a * hosts(base)), words: `for as many steps and cores as here (${plural(a, "step")} on ${plural(cores(base), "core")} there, ${b} on ${cores(now)} here)` };
  const watched = (r: Report): number => of(r, "device_time") / (1 - of(r, "idle_fraction"));
  const ratio = watched(now) / watched(base);
  if (byTime && ratio > 0 && Number.isFinite(ratio)) return { cores: ratio, hosts: ratio, words: "for as long as devices were watched here" };
  return { cores: cores(now) / cores(base), hosts: hosts(now) / hosts(base), words: `for as many cores as here; one of the two has no steps, so that whole profiles are compared` };
}

/** Figures that are sums grow with what was recorded, as tables do. */
const SUMS: Record<string, "cores" | "hosts" | undefined> = { device_time: "cores", kernel_time: "cores", program_time: "cores", host_input_time: "hosts" };

export const scaledMetrics = (metrics: readonly Metric[], scale: Scale): Metric[] =>
  metrics.map((m) => (SUMS[m.id] && m.value !== null ? { ...m, value: Math.round(asNumber(m.value) * scale[SUMS[m.id]!]) } : m));

/** Of overviews: why what stands beside each other is not alike. `ops`: of the base, where the page is about ops. */
export function doubtsOf(now: Report, base: Report, ops: Report | null): string {
  const valueOf = (r: Report, id: string): Cell | undefined => r.metrics.find((m) => m.id === id)?.value;
  const out: string[] = [];
  const [mine, theirs] = [valueOf(now, "device_type"), valueOf(base, "device_type")];
  if (mine && theirs && mine !== theirs) out.push(`Not the same device: ${String(theirs)} there, ${String(mine)} here.`);
  for (const [r, where] of [[base, "of the base"], [now, "of this run"]] as const)
    if (r.missing_hosts.length) out.push(`${plural(r.missing_hosts.length, "host")} ${where} could not be read: ${r.missing_hosts.slice(0, 5).map((h) => h.host).join(", ")}.`);
  if (ops && opsOf(ops).length === 0) out.push("The base has no ops.");
  return out.join(" ");
}

/** Of the base the program that is called as the one here, be it compiled anew; "": it has none. */
export function twinProgram(now: Report, base: Report, id: string): string {
  const programs = (r: Report): [id: string, name: string][] => {
    const t = r.tables.find((x) => x.id === "modules");
    const [p, m] = t ? [at(t, "program_id"), at(t, "module")] : [-1, -1];
    return p < 0 || m < 0 ? [] : t!.rows.map((row) => [String(row[p]), moduleBase(String(row[m] ?? ""))]);
  };
  const all = programs(now);
  const mine = all.find(([p]) => p === id) ?? (id === "" ? all[0] : undefined);
  return (mine && programs(base).find(([, name]) => name === mine[1])?.[0]) ?? "";
}

/* --- which rows are the same --- */

interface Rule {
  passes: readonly (readonly string[])[]; // ids of columns that say what a row is, from strict to loose
  by?: "cores" | "hosts" | "none"; // what its weight grows with
  weight?: string;
  only?: string; // a column that the table must have
}

const one = (column: string, by: Rule["by"] = "cores"): Rule => ({ passes: [[column]], by });

const RULES: Record<string, Rule | readonly Rule[] | undefined> = {
  device: { passes: [["operation", "type"]] }, host: { passes: [["operation", "type"]], by: "hosts" },
  device_types: one("type"), host_types: one("type", "hosts"),
  categories: one("category"), layers: one("layer"), sources: one("source"),
  replica_groups: [{ ...one("replica_group"), only: "replica_group" }, { passes: [["op", "kind", "group"], ["kind", "group"]], weight: "total", only: "group" }],
  rematerialization: one("computed"), outside_compilation: one("computed"),
  kernels: { passes: [["kernel", "op", "grid", "block"], ["kernel", "op"], ["kernel"], ["short_name", "op"], ["short_name"]], only: "short_name" },
  units: { passes: [["host", "device", "sample", "node", "unit"], ["device", "sample", "node", "unit"], ["device", "node", "unit"]], by: "none", weight: "busy" },
  counters: { passes: [["host", "chip", "kernel", "sample", "counter"], ["chip", "kernel", "sample", "counter"], ["chip", "sample", "counter"], ["chip", "counter"]], by: "none", weight: "value" },
  stages: one("stage", "hosts"), input_ops: { passes: [["op", "kind"], ["op"]], by: "hosts" },
  hosts: { passes: [["host"]], by: "none", weight: "step_time" },
};

const at = (t: Pick<Table, "columns">, id: string): number => t.columns.findIndex((c) => c.id === id);

/** The first that is about such a table: two pages may call theirs alike. */
const ruleOf = (t: Table): Rule | undefined => [RULES[t.id] ?? []].flat().find((r) => !r.only || at(t, r.only) >= 0);

export const isOpTable = (t: Table): boolean => t.columns.some((c) => c.type === "op") && at(t, "self_time") >= 0 && at(t, "program_id") >= 0;

export const BASE_COLUMNS = new Set(["base", "base_delta", "base_share", "base_match"]);

function addedColumns(weight: Column, run: string, words: string, share: boolean, match: boolean): Column[] {
  const number = { unit: weight.unit, type: weight.type } as const;
  return [
    { ...number, id: "base", label: "Base", definition: `${weight.label} in ${run}, ${words}` },
    { ...number, id: "base_delta", label: "Change", definition: `${weight.label} here less that of the base` },
    ...(share ? [{ id: "base_share", label: "Of the change", unit: "fraction", type: "number" as const, definition: "the row's change / that of all rows, those of the base that are gone too" }] : []),
    ...(match ? [{ id: "base_match", label: "Match", unit: "", type: "text" as const, definition: "same: alike in module, opcode, shapes and framework op; moved: in another module; new shapes: the same framework op with other shapes; added: the base has none" }] : []),
  ];
}

/** What stood there for each row; NaN: nothing. `gone`: what is only there. */
interface Matched {
  was: number[];
  match: (Match | "")[];
  gone: { rows: number; sum: number };
}

function byColumns(t: Table, base: Table, rule: Rule, weight: number, scale: number): Matched {
  const w = t.columns[weight]!.id;
  const there = at(base, w);
  const value = (row: readonly Cell[]): number => (there < 0 ? NaN : asNumber(row[there]) * scale);
  const keyOf = (of: Table) => (ids: readonly string[]) => {
    const places = ids.map((id) => at(of, id));
    return (row: readonly Cell[]): string => (places.some((p) => p < 0) ? "" : JSON.stringify(places.map((p) => String(row[p] ?? ""))));
  };
  const [mine, theirs] = [keyOf(t), keyOf(base)];
  const pairs = pairRows(t.rows, base.rows, rule.passes.map((ids) => [mine(ids), theirs(ids)] as const));
  const used = new Set(pairs.values());
  const left = base.rows.filter((r) => !used.has(r));
  return {
    was: t.rows.map((r) => (pairs.has(r) ? value(pairs.get(r)!) : NaN)), match: t.rows.map(() => ""),
    gone: { rows: left.length, sum: left.reduce((s, r) => s + (value(r) || 0), 0) },
  };
}

/* --- ops --- */

/** An op here, the one that it was. */
export interface OpPairs {
  was: Map<string, { time: number; match: Match }>; // by opKey
  gone: { rows: number; sum: number };
}

const opKey = (op: string, program: string): string => `${program}\u0001${op}`;

/** A pass at a time: between them the page may go on. */
export function* pairOps(now: Report, base: Report, scale: number): Generator<void, OpPairs> {
  const out: OpPairs = { was: new Map(), gone: { rows: 0, sum: 0 } };
  const [then, mine] = [opsOf(base), opsOf(now)];
  yield;
  for (const { a, b, match } of yield* matchInSteps(then, mine)) {
    if (!b) {
      out.gone.rows++;
      out.gone.sum += a!.time * scale;
    } else {
      out.was.set(opKey(b.name, b.program), { time: a ? a.time * scale : NaN, match });
    }
  }
  return out;
}

function byOps(t: Table, ops: OpPairs): Matched {
  const c = opColumns(t);
  const found = t.rows.map((r) => {
    const { op, program } = opOf(r, c);
    return ops.was.get(opKey(op, program));
  });
  return { was: found.map((f) => f?.time ?? NaN), match: found.map((f) => f?.match ?? "added"), gone: ops.gone };
}

/* --- a table with it --- */

export interface Base {
  run: string;
  report: Report | null; // of the same tool; null: not here yet, or it has none
  scale: Scale;
  ops: OpPairs | null;
  part?: boolean; // the page has some of the rows only
  doubts?: string; // why the two are not alike; "": they are
}

/** The graph's tables are about what is around one op, in amounts of their own. */
const APART = new Set(["graph_viewer"]);

const MAY_SHARE = /^(ps|ns|bytes|count)$/;

/** The table with the base's columns behind its weight; itself, where it is about nothing that could be matched. */
export function compared(t: Table, b: Base): Table {
  const rule = ruleOf(t);
  const ops = isOpTable(t);
  if (APART.has(b.report?.tool ?? "")) return t;
  const there = b.report?.tables.find((x) => x.id === t.id);
  if (ops ? !b.ops : !there || !rule) return t;
  const weight = rule?.weight ? at(t, rule.weight) : weightColumn(t.columns);
  if (weight < 0 || at(t, "base") >= 0) return t;
  const by = rule?.by ?? "cores";
  const made = ops ? byOps(t, b.ops!) : byColumns(t, there!, rule!, weight, by === "none" ? 1 : b.scale[by]);
  const c = t.columns[weight]!;
  const summed = MAY_SHARE.test(c.unit) && by !== "none";
  const cut = !ops && there!.total_rows > there!.rows.length; // what has no partner may have one in the rest
  const part = cut || b.part === true || t.total_rows > t.rows.length;
  const share = summed && !part;
  const delta = t.rows.map((r, i) => asNumber(r[weight]) - (Number.isNaN(made.was[i]!) ? (summed && !cut ? 0 : NaN) : made.was[i]!));
  const change = delta.reduce((s, d) => s + (d || 0), 0) - made.gone.sum;
  const whole = (v: number): number | null => (Number.isNaN(v) ? null : c.unit === "ps" || c.unit === "ns" || c.unit === "bytes" ? Math.round(v) : v);
  const rows = t.rows.map((r, i): Cell[] => [
    ...r.slice(0, weight + 1), whole(made.was[i]!), whole(delta[i]!),
    ...(share ? [change !== 0 && !Number.isNaN(delta[i]!) ? delta[i]! / change : null] : []),
    ...r.slice(weight + 1), ...(ops ? [made.match[i]!] : []),
  ]);
  const columns = addedColumns(c, b.run, by === "none" ? "as it was recorded" : b.scale.words, share, ops);
  const match = ops ? columns.slice(-1) : [];
  const front = columns.slice(0, columns.length - match.length);
  const sums = share && t.totals ? { base: 0, base_delta: 0 } : {};
  const lost = !part && made.gone.rows > 0;
  const said = share
    ? `Against ${b.run}: ${signed(whole(change) ?? 0, c.unit)} in all${lost ? `, of which ${show(whole(made.gone.sum), c.unit)} less in ${plural(made.gone.rows, "row")} that only the base has` : ""}. Base: ${b.scale.words}.`
    : `Against ${b.run}${lost ? `, which has ${plural(made.gone.rows, "row")} that this run has not` : ""}${part ? ": row by row, for not all rows are here" : ""}.${summed ? ` Base: ${b.scale.words}.` : ""}`;
  const note = [said, b.doubts].filter(Boolean).join(" ");
  return {
    ...t, rows, note: [t.note, note].filter(Boolean).join(" "),
    columns: [...t.columns.slice(0, weight + 1), ...front, ...t.columns.slice(weight + 1), ...match],
    ...(t.totals ? { totals: { ...t.totals, ...sums } } : {}),
  };
}

/* --- a tree with it --- */

/** Nodes by their path, ops by what they are. */
export function comparedTree(tree: Tree, b: Base): Tree {
  const there = APART.has(b.report?.tool ?? "") ? null : b.report?.tree;
  const weight = weightColumn(tree.columns);
  if (!there || weight < 0 || there.id !== tree.id) return tree;
  const w = there.columns.findIndex((c) => c.id === tree.columns[weight]!.id);
  const [op, program] = [tree.columns.findIndex((c) => c.type === "op"), tree.columns.findIndex((c) => c.id === "program_id")];
  const paths = (x: Tree): string[] => {
    const out: string[] = [];
    x.nodes.forEach((n) => out.push(`${n.parent >= 0 ? out[n.parent]! : ""}\u0001${n.name}`));
    return out;
  };
  const were = new Map(paths(there).map((p, i) => [p, asNumber(there.nodes[i]!.values[w]) * b.scale.cores]));
  const { children } = familyOf(tree);
  const mine = paths(tree);
  const was = tree.nodes.map((n, i) => {
    const name = op >= 0 ? String(n.values[op] ?? "") : "";
    // A scope with one op in it is a scope still.
    const leaf = name !== "" && children[i]!.length === 0;
    const pair = leaf ? b.ops?.was.get(opKey(name, program >= 0 ? String(n.values[program] ?? "") : "")) : undefined;
    return pair ? pair.time : were.get(mine[i]!) ?? NaN;
  });
  const delta = tree.nodes.map((n, i) => (asNumber(n.values[weight]) || 0) - (was[i]! || 0));
  const roots = tree.nodes.reduce((s, n, i) => s + (n.parent < 0 ? delta[i]! : 0), 0);
  const whole = (v: number): number | null => (Number.isNaN(v) ? null : Math.round(v));
  return {
    ...tree,
    columns: [...tree.columns.slice(0, weight + 1), ...addedColumns(tree.columns[weight]!, b.run, b.scale.words, true, false), ...tree.columns.slice(weight + 1)],
    nodes: tree.nodes.map((n, i) => ({
      ...n, values: [...n.values.slice(0, weight + 1), whole(was[i]!), whole(delta[i]!), roots !== 0 ? delta[i]! / roots : null, ...n.values.slice(weight + 1)],
    })),
  };
}

/* --- units by devices --- */

const deviceNumber = (id: string): string => /(\d+)$/.exec(id)?.[1] ?? id;

/** Less what they were: of the device of that name, or of that number, or else in that place. Itself where the base has none of them. */
export function lessBase(t: Table, base: Table | undefined): Table {
  if (!base) return t;
  const rows = new Map(base.rows.map((r) => [String(r[0]), r]));
  const places = t.columns.slice(1).map((c, i) => {
    const same = at(base, c.id);
    if (same > 0) return same;
    const number = base.columns.findIndex((x, k) => k > 0 && deviceNumber(x.id) === deviceNumber(c.id));
    return number > 0 ? number : i + 1;
  });
  let some = false;
  const less = t.rows.map((r) => [r[0] ?? null, ...places.map((place, i): Cell => {
    const d = asNumber(r[i + 1]) - asNumber(rows.get(String(r[0]))?.[place]);
    some ||= !Number.isNaN(d);
    return Number.isNaN(d) ? null : d;
  })]);
  return some ? { ...t, rows: less } : t;
}

export type { Op };
