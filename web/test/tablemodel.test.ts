import { expect, test } from "vitest";
import type { Cell, Column } from "../src/api/report";
import { commonStart, shownColumns } from "../src/model/columns";
import { arrange, findColumn, formatSort, groupable, grouped, groupFilter, parseFilter, parseSort, rowMatches, summable, toCsv, toMarkdown, totals } from "../src/model/tablemodel";

const columns: Column[] = [
  { id: "op", label: "HLO op", unit: "", type: "op" },
  { id: "category", label: "Category", unit: "", type: "text" },
  { id: "self_time", label: "Self time", unit: "ps", type: "number" },
  { id: "occurrences", label: "Occurrences", unit: "count", type: "number" },
  { id: "avg_time", label: "Mean", unit: "ps", type: "number" },
];
const rows: Cell[][] = [
  ["fusion.10", "loop fusion", 5_000_000, 2, 2_500_000],
  ["fusion.2", "loop fusion", 9_000_000, 3, 3_000_000],
  ["copy.1", "data formatting", null, 1, null],
  ["all-reduce.3", "all-reduce", 9_007_199_254_740_993n, 1, 7],
];
const table = { columns, rows };
const find = (q: string): string[] => {
  const f = parseFilter(q, columns);
  return rows.filter((r) => rowMatches(r, columns, f)).map((r) => String(r[0]));
};

test("words must all be found, a minus excludes, quotes hold together", () => {
  expect(find("fusion")).toEqual(["fusion.10", "fusion.2"]);
  expect(find("fusion -10")).toEqual(["fusion.2"]);
  expect(find('"data formatting"')).toEqual(["copy.1"]);
  expect(find("FUSION loop")).toEqual(["fusion.10", "fusion.2"]);
  expect(find("")).toHaveLength(4);
});

test("a column can be named, by id or label or its beginning", () => {
  expect(find("category:loop")).toEqual(["fusion.10", "fusion.2"]);
  expect(find("-cat:loop")).toEqual(["copy.1", "all-reduce.3"]);
  expect(findColumn(columns, "Self time")).toBe(2);
  expect(findColumn(columns, "self")).toBe(2);
  expect(findColumn(columns, "nothing")).toBe(-1);
});

test("amounts compare with units, and what has no value is neither more nor less", () => {
  expect(find("self>6us")).toEqual(["fusion.2", "all-reduce.3"]);
  expect(find("self<=5us")).toEqual(["fusion.10"]);
  expect(find("occ>=2 self<9us")).toEqual(["fusion.10"]);
  expect(find("occurrences=1")).toEqual(["copy.1", "all-reduce.3"]);
  expect(find("self:n/a")).toEqual(["copy.1"]);
});

test("a word between slashes is a regular expression, and a broken one is said", () => {
  expect(find("op:/^(fusion|copy)\\.\\d$/")).toEqual(["fusion.2", "copy.1"]);
  expect(find("-/fusion/")).toEqual(["copy.1", "all-reduce.3"]);
  expect(parseFilter("/a(/", columns).errors[0]).toMatch(/no regular expression/);
  expect(find("jit(f)/jit(main)/")).toEqual([]);
});

test("what is not understood is said, and a name with a colon is a name", () => {
  expect(parseFilter("speed>10us", columns).errors).toEqual(["no column “speed”"]);
  expect(parseFilter("self>fast", columns).errors[0]).toMatch(/no amount/);
  expect(parseFilter("jit:main", columns).terms[0]!.text).toBe("jit:main");
});

test("rows are ordered by value, missing ones last both ways, equal ones as they were", () => {
  const names = (sort: string): string[] => Array.from(arrange(table, parseFilter("", columns), parseSort(sort)), (i) => String(rows[i]![0]));
  expect(names("-self_time")).toEqual(["all-reduce.3", "fusion.2", "fusion.10", "copy.1"]);
  expect(names("self_time")).toEqual(["fusion.10", "fusion.2", "all-reduce.3", "copy.1"]);
  expect(names("op")).toEqual(["all-reduce.3", "copy.1", "fusion.2", "fusion.10"]);
  expect(names("occurrences")).toEqual(["copy.1", "all-reduce.3", "fusion.10", "fusion.2"]);
  expect(names("-nothing")).toEqual(["fusion.10", "fusion.2", "copy.1", "all-reduce.3"]);
  expect(formatSort(parseSort("-self_time"))).toBe("-self_time");
});

test("order is that of a comparison, whatever the values are, and names count their numbers", () => {
  const odd = [0, -0, 1, -1, 1e-300, -1e300, Infinity, -Infinity, 2 ** 53, 4096, 4097, null, true, false, -7.5];
  const made: Cell[][] = Array.from({ length: 3000 }, (_, i) => [
    `${["fusion.", "Copy.", "copy-start.", ""][i % 4]}${(i * 7919) % 97}${i % 5 ? "" : `.remat${i % 13}`}`, i % 7 ? `c${i % 3}` : null,
    odd[(i * 31) % odd.length]!, i % 2 ? BigInt(2) ** 60n + BigInt((i * 17) % 50) : (i * 13) % 50, i,
  ]);
  const value = (c: Cell): number | bigint => (typeof c === "boolean" ? Number(c) : (c as number));
  for (const at of [2, 3])
    for (const down of [false, true]) {
      const got = Array.from(arrange({ columns, rows: made }, parseFilter("", columns), { column: columns[at]!.id, descending: down }));
      const want = made.map((_, i) => i).sort((a, b) => {
        const [x, y] = [made[a]![at]!, made[b]![at]!];
        if (x === null || y === null) return x !== null ? -1 : y !== null ? 1 : a - b;
        const [v, w] = [value(x), value(y)];
        return v < w ? (down ? 1 : -1) : v > w ? (down ? -1 : 1) : a - b;
      });
      expect(got).toEqual(want);
    }
  const names = ["fusion.10", "fusion.9.remat10", "Copy.1", "fusion.9", "copy-start.96", "fusion", "fusion.9.remat9", "7", ""].map((n): Cell[] => [n, null, 1, 1, 1]);
  expect(Array.from(arrange({ columns, rows: names }, parseFilter("", columns), { column: columns[0]!.id, descending: false }), (i) => names[i]![0]))
    .toEqual(["", "7", "copy-start.96", "Copy.1", "fusion", "fusion.9", "fusion.9.remat9", "fusion.9.remat10", "fusion.10"]);
  const few = made.slice(0, 5);
  expect(Array.from(arrange({ columns, rows: few }, parseFilter("", columns), { column: columns[1]!.id, descending: true })).at(-1)).toBe(0);
});

test("50,000 rows are ordered one way and the other, all of them", () => {
  const many: Cell[][] = Array.from({ length: 50_000 }, (_, i) => [`fusion.${(i * 7919) % 50_000}`, "x", (i * 104_729) % 1_000_003, i, 1]);
  const none = parseFilter("", columns);
  const time = (i: number) => many[i]![2] as number;
  for (const [sort, sign] of [["-self_time", -1], ["self_time", 1]] as const) {
    const order = Array.from(arrange({ columns, rows: many }, none, parseSort(sort)));
    expect(new Set(order).size).toBe(50_000);
    expect(order.every((row, at) => at === 0 || sign * (time(row) - time(order[at - 1]!)) >= 0)).toBe(true);
  }
});

test("only what adds up is added up", () => {
  expect(columns.map(summable)).toEqual([false, false, true, true, false]);
  expect(totals(table, [0, 1, 2])).toEqual([null, null, 14_000_000, 6, null]);
});

test("CSV has exact values, and runs nothing in a spreadsheet", () => {
  const csv = toCsv(columns, [["=cmd()", 'a "b", c', 12, -3, null]], [0, 1, 2, 3, 4]);
  expect(csv).toBe('op,category,self_time (ps),occurrences,avg_time (ps)\r\n\'=cmd(),"a ""b"", c",12,-3,\r\n');
});

test("names in Markdown stay names", () => {
  const md = toMarkdown(columns, [["<img src=x>|`a`", "[x](y)", 1000, 1, null]], [0, 1, 2]);
  expect(md.split("\n")[2]).toBe("| \\<img src=x\\>\\|\\`a\\` | \\[x\\]\\(y\\) | 1.000 ns |");
});

test("columns without values are left out and named, and can be asked for", () => {
  const t = { columns: [...columns, { id: "program_id", label: "Program", unit: "", type: "text" as const }, { id: "x", label: "X", unit: "", type: "number" as const }], rows: rows.map((r) => [...r, "1", null]) };
  expect(shownColumns(t, new Set()).columns).toEqual([0, 1, 2, 3, 4]);
  expect(shownColumns(t, new Set()).empty).toEqual([6]);
  expect(shownColumns(t, new Set(["program_id", "op"])).columns).toEqual([1, 2, 3, 4, 5]);
});

test("columns that few want are there when they are asked for", () => {
  const rare = ["cmem_read_rate", "outside_compilation"].map((id) => ({ id, label: id, unit: "", type: "number" as const }));
  const t = { columns: [...columns, ...rare], rows: rows.map((r) => [...r, 1, null]) };
  expect(shownColumns(t, new Set())).toEqual({ columns: [0, 1, 2, 3, 4], empty: [] });
  expect(shownColumns(t, new Set(["outside_compilation", "cmem_read_rate"])).columns).toEqual([0, 1, 2, 3, 4, 5, 6]);
});

test("what all texts of a column begin with is found, up to the end of a word", () => {
  const rows = ["vf_chip_tc_tcs_tc_misc_tcs_stats_a", "vf_chip_tc_tcs_tc_misc_tcs_stats_b", null].map((x) => [x]);
  expect(commonStart(rows, 0)).toBe("vf_chip_tc_tcs_tc_misc_tcs_stats_".length);
  expect(commonStart([["fusion.1"], ["fusion.2"]], 0)).toBe(0);
  expect(commonStart([["the same long text, everywhere"], ["the same long text, everywhere"]], 0)).toBe(0);
  expect(commonStart([], 0)).toBe(0);
});

test("rows that share a text are summed up as groups, and a group's filter leaves its rows", () => {
  const columns = [
    { id: "op", label: "Op", unit: "", type: "op" as const }, { id: "category", label: "Category", unit: "", type: "text" as const },
    { id: "self_time", label: "Self", unit: "ps", type: "number" as const }, { id: "mean_time", label: "Mean", unit: "ps", type: "number" as const },
  ];
  const rows = [["a", "copy", 5, 1], ["b", "loop fusion", 7, 1], ["c", "copy", 2n ** 60n, 1], ["d", null, 1, 1], ["e", "loop fusion", null, 1]];
  const table = { id: "ops", title: "Ops", note: null, columns, rows, total_rows: 5, rest: null, sort: null };
  expect(groupable(table)).toEqual([1]);
  const all = arrange(table, parseFilter("", columns), null);
  const g = grouped(table, all, 1);
  expect(g.columns.map((c) => c.id)).toEqual(["category", "rows", "self_time"]);
  expect(g.rows).toEqual([["copy", 2, 2n ** 60n + 5n], ["loop fusion", 2, 7], [null, 1, 1]]);
  expect(g.sort).toEqual({ column: "self_time", descending: true });
  const open = (value: string | null) => arrange(table, parseFilter(groupFilter("", columns[1]!, value), columns), null);
  expect([...open("loop fusion")]).toEqual([1, 4]);
  expect([...open(null)]).toEqual([3]);
  expect(grouped(table, arrange(table, parseFilter("self_time>6ps", columns), null), 1).rows.map((r) => r[1])).toEqual([1, 1]);
});
