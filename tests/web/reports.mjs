// Reports made here: every part that one can have, with the names and sizes that a test wants.

const column = (id, label, unit, type, definition = `what ${label} means`) => ({ id, label, unit, type, definition });
const metric = (id, label, unit, value, more = {}) => ({
  id, label, unit, value, reason: value === null ? "not in the profile: capture with the host tracer at level 2" : null, note: null,
  definition: `${label} over all cores`, spread: null, ...more,
});

export const opColumns = [
  column("op", "HLO op", "", "op"), column("category", "Category", "", "text"), column("occurrences", "Occurrences", "count", "number"),
  column("self_time", "Self time", "ps", "number"), column("self_fraction", "Share", "fraction", "number"), column("flop_rate", "FLOP rate", "flop/s", "number"),
  column("operational_intensity", "Intensity", "flop/byte", "number"), column("framework_op", "Framework op", "", "text"), column("text", "HLO text", "", "text"),
  column("nothing", "Nothing", "bytes", "bytes"), column("program_id", "Program", "", "text"), column("module", "Module", "", "text"),
  column("first_begin_ps", "First", "ps", "number"), column("first_plane", "Plane", "", "text"),
];

/** n ops, ten in each category; op 0 has the most time. `scale` makes a run that is slower. */
export function opTable(n, scale = () => 1, name = (i) => `fusion.${i}`) {
  const rows = Array.from({ length: n }, (_, i) => [
    name(i), `category ${i % 10}`, 3 + i, Math.round(((n - i) * 1e9 * scale(i)) / n), (n - i) / n, i % 5 === 0 ? null : 1e12 / (i + 1), i % 5 === 0 ? null : 0.5 * (i + 1),
    i % 3 ? `jit(f)/layer_${i}/dot` : null, `%${name(i)} = f32[8,${i}]{1,0} fusion(f32[8] %a), kind=kLoop`, null, "42", "jit_f(42)", 1_000_000 * i, "/device:TPU:0",
  ]);
  return { id: "ops", title: "HLO ops", note: null, columns: opColumns, rows, total_rows: n, matched_rows: n, totals: null, rest: null, sort: { column: "self_time", descending: true } };
}

/** n buffers of a program, 2 GiB each times `scale`. */
export function bufferTable(n, scale, name) {
  const columns = [column("op", "Op", "", "op"), column("program_id", "Program", "", "text"), column("size", "Size", "bytes", "bytes"), column("padding", "Padding", "bytes", "bytes"),
    column("kind", "Kind", "", "text"), column("opcode", "Opcode", "", "text"), column("shape", "Shape", "", "text"), column("framework_op", "Framework op", "", "text")];
  const rows = Array.from({ length: n }, (_, i) => [name(i), "42", 2 ** 31 * scale(i), 0, "Temporary", "fusion", `f32[8,${i}]{1,0:T(8,128)}`, `jit(f)/layer_${i}/dot`]);
  return { id: "buffers", title: "Buffers", note: null, columns, rows, total_rows: n, rest: null, sort: { column: "size", descending: true } };
}

export function everything({ name = (i) => `name ${i}`, tool = "overview_page", rows = 40, hosts = ["w-0", "w-1"] } = {}) {
  const names = [0, 1, 2, 3].map(name);
  return {
    tool, title: name(0), question: `${name(0)}?`, hosts,
    missing_hosts: [{ host: name(5), code: "corrupt_profile", detail: `${name(0)} ends early`, offset: 123 }],
    verdict: `Input bound: ${name(0)} waits 41.2 % of a step.`,
    metrics: [
      metric("step_time_mean", "Step time", "ps", 12_345_678_901, { note: `inferred from ${name(0)}`, spread: { min: 11e9, max: 16e9, sd: 5e8, max_host: name(1) } }),
      metric("steps", "Steps", "count", 12), metric("cores", "Cores", "count", 4), metric("hosts", "Hosts", "count", 2), metric("device_type", "Device", "", name(2)),
      metric("mxu_utilization", "FLOP utilization", "fraction", 0.41), metric("hbm_utilization", "HBM utilization", "fraction", 1.2, { note: "above 100 %" }),
      metric("peak_flop_rate", "Peak FLOP rate", "flop/s", 918e12), metric("peak_hbm_rate", "Peak HBM bandwidth", "bytes/s", 1640e9), metric("peak_memory", "Peak memory", "bytes", null),
      metric("clock_offset", "Clock offset", "ps", null),
    ],
    tables: [
      opTable(rows, () => 1, name),
      { id: "nodes", title: "Nodes", note: name(0), columns: [column("op", "Op", "", "op"), column("opcode", "Opcode", "", "text"), column("shape", "Shape", "", "text"), column("distance", "Distance", "", "number")],
        rows: names.map((x, i) => [x, name(9), name(8), i]), total_rows: 9, rest: null, sort: null },
      { id: "edges", title: "Edges", note: null, columns: [column("from", "From", "", "text"), column("to", "To", "", "text")], rows: [[names[1], names[0]], [names[0], names[2]]], total_rows: 2, rest: null, sort: null },
    ],
    series: [
      { id: "stack", title: "Steps", x: { label: "Step", unit: "", type: "number" }, y: { label: "Time", unit: "ps" }, kind: "stack", names, points: Array.from({ length: 20 }, (_, i) => [i, 5e9, 3e9 + i * 1e8, null, 1e9]), total_points: 20, reduced: false },
      { id: "line", title: "Memory", x: { label: "Time", unit: "ps", type: "number" }, y: { label: "In use", unit: "bytes" }, kind: "line", names: [names[0]], points: Array.from({ length: 50 }, (_, i) => [i * 1e9, 1e9 + (i % 7) * 1e8]), total_points: 5000, reduced: true },
      { id: "bar", title: "Categories", x: { label: "Category", unit: "", type: "text" }, y: { label: "Time", unit: "ps" }, kind: "bar", names: ["time"], points: names.map((x, i) => [x, (i + 1) * 1e9]), total_points: 4, reduced: false },
      { id: "scatter", title: "Dots", x: { label: "x", unit: "", type: "number" }, y: { label: "y", unit: "" }, kind: "scatter", names: [names[0]], points: [[1, 2], [3, 4]], total_points: 2, reduced: false },
      { id: "heat", title: "Hosts and steps", x: { label: "Step", unit: "", type: "number" }, y: { label: "Time", unit: "ps" }, kind: "heat", names, points: Array.from({ length: 8 }, (_, i) => [i, 1e9, 2e9, i * 1e9, null]), total_points: 8, reduced: false },
    ],
    tree: {
      id: "by_category", total_nodes: 5, columns: [column("self_time", "Self time", "ps", "number"), column("wasted_fraction", "Wasted", "fraction", "number"), column("category", "Category", "", "text")],
      nodes: [{ parent: -1, name: name(0), values: [100e9, 0.5, null] }, { parent: 0, name: name(1), values: [60e9, 0.4, name(3)] }, { parent: 0, name: name(2), values: [40e9, null, name(3)] },
        { parent: 1, name: name(3), values: [50e9, 0.1, name(3)] }, { parent: 1, name: name(4), values: [10e9, 0.1, name(3)] }],
    },
    text: Array.from({ length: 500 }, (_, i) => `  %${name(i)} = f32[8] add(f32[8] %a, f32[8] %b)`).join("\n"),
    notes: [{ severity: "warning", code: "x", text: `${name(0)} is cut` }, { severity: "info", code: "y", text: `steps of ${name(1)}` }, { severity: "error", code: "z", text: name(2) }],
    links: [],
  };
}

/** Suggestions: {rule: [priority, share]}; an op of the first is called `name`. */
export function suggestions(found, name = "copy.1") {
  const text = (id) => column(id, id, "", "text");
  const number = (id, unit = "ps") => column(id, id, unit, "number");
  const place = ["w-0", "/device:TPU:0", 1_000_000, 500_000];
  const table = (id, columns, rows) => ({ id, title: id, note: null, columns, rows, total_rows: rows.length, rest: null, sort: null });
  const places = [text("first_host"), text("first_plane"), number("first_begin_ps"), number("first_duration_ps")];
  return {
    ...everything({ tool: "smart_suggestion" }), series: [], tree: null, text: null, missing_hosts: [], notes: [],
    metrics: [metric("status", "Status", "", "NEEDS_ATTENTION"), metric("step_time_mean", "Step time", "ps", 10e9), metric("idle_fraction", "Idle", "fraction", 0.4), metric("peak_memory", "Peak memory", "bytes", null), metric("device_type", "Device", "", "TPU"), metric("hosts", "Hosts", "count", 2)],
    tables: [
      table("findings", [text("rule"), text("priority"), number("share", "fraction"), text("finding"), text("evidence"), text("fix"), text("tool"), column("op", "Op", "", "op"), text("program_id"), ...places, number("impact")],
        Object.entries(found).map(([rule, [priority, share]]) => [rule, priority, share, `about ${rule}`, null, "Do less.", "hlo_stats", name, "42", ...place, Math.round(share * 10e9)])),
      table("evidence", [text("rule"), text("evidence"), number("share", "fraction"), text("tool"), column("op", "Op", "", "op"), text("program_id"), ...places],
        Object.keys(found).flatMap((rule) => [[rule, name, 0.1, "hlo_stats", name, "42", ...place], [rule, "the longest pause", null, "trace", null, null, ...place]])),
      table("summary", [text("sentence")], [["It needs attention: it waits."], ["A step takes 10 ms."], ["What helps first: do less."]]),
      table("gate", [text("condition"), text("id"), number("value", ""), number("limit", ""), column("at_least", "", "", "bool"), column("met", "", "", "bool"), text("reason")], [["use", "work", 0.1, 0.5, true, false, null], ["memory", "memory", null, 0.9, false, null, "no allocations"]]),
      table("programs", [text("program")], [["jit_f"]]),
      table("rules", [text("rule"), text("state")], [["copies", "fine"]]),
    ],
  };
}
