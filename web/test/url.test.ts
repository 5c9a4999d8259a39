import { expect, test } from "vitest";
import { emptyOwn, emptyTrace, formatRows, formatTrace, parseRows, parseTrace, usualDock, type TraceUrl } from "../src/model/url";

const full: TraceUrl = {
  run: "2026 run/1", host: "worker-0", t: { t0: -5n, t1: 9007199254740993n }, sel: "18446744073709551615",
  area: { t0: 1n, t1: 2n, rows: "0,3,7-12" }, q: 'name:"all reduce" -x', folded: [2, 0], flat: [5], top: 17, find: "tpu:0 ops",
  pins: [9, 3], hide: [4, 5], measured: { t0: 5n, t1: 9n }, marks: [{ at: 7n, note: "a, b~c & d=é%" }, { at: -1n, note: "" }], off: ["copy", "idle"], curves: [{ line: 2, stat: "bytes, in use~" }], beside: [
    {
      run: "a,b@c", host: "w@1,2", shift: -5n,
      own: {
        sel: "12", area: { t0: -3n, t1: 4n, rows: "" }, folded: [1], flat: [2, 3], top: 8, find: "tpu & co", pins: [7, 1], hide: [0], curves: [{ line: 1, stat: "a=b&c" }], list: 6,
      },
    },
    { run: "", host: "é%", shift: 0n, own: { ...emptyOwn, pins: [4], top: 2 } },
  ], use: 1, strip: true, tips: true, flame: true, list: 3, order: { by: "p99_ps", down: false }, among: "self>10us -a b&c", drag: "measure", dock: "hits", palette: "contrast",
};

test("everything that changes the picture comes back from the address", () => {
  expect(parseTrace(formatTrace(full))).toEqual({ ...full, folded: [0, 2] });
  expect(parseTrace(formatTrace({ ...emptyTrace, run: "r" }))).toEqual({ ...emptyTrace, run: "r" });
});

test("what a timeline beside has for itself is its own by number, and the first one's is not mixed with it", () => {
  const s = parseTrace("?run=r&fold=1&with=x,h@0,g@-5@q&fold.1=2&pin.2=9,3&top.2=7&sel.3=1&hide.2=bad");
  expect([s.folded, s.pins]).toEqual([[1], []]);
  expect(s.beside.map((b) => [b.host, b.own])).toEqual([["h", { ...emptyOwn, folded: [2] }], ["g", { ...emptyOwn, pins: [9, 3], top: 7 }]]);
  expect(formatTrace(s)).toBe("?run=r&fold=1&with=h@0,g@-5@q&fold.1=2&top.2=7&pin.2=9,3");
});

test("the address is short and readable", () => {
  expect(formatTrace({ ...emptyTrace, run: "r", host: "h", t: { t0: 1n, t1: 20n }, sel: "7" })).toBe("?run=r&host=h&t=1..20&sel=7");
});

test("the timeline that keys are about is in the address where it is not the one of the chosen event", () => {
  const b = { run: "", host: "h", shift: 0n, own: { ...emptyOwn, sel: "1" } };
  const s = { ...emptyTrace, run: "r", beside: [b] };
  expect(formatTrace({ ...s, use: 1 })).toBe("?run=r&with=h@0&sel.1=1");
  expect(parseTrace(formatTrace({ ...s, use: 0 })).use).toBe(0);
  expect(formatTrace({ ...s, beside: [], use: 1 })).toBe("?run=r");
});

test("a row in sight is a line or a folded group, and no more rows are pinned than are read", () => {
  expect(parseTrace("?run=r&top=p12").top).toBe("p12");
  expect(formatTrace({ ...emptyTrace, run: "r", top: "p12" })).toBe("?run=r&top=p12");
  for (const bad of ["p", "px", "p-1", "12p"]) expect(parseTrace(`?run=r&top=${bad}`).top).toBeNull();
  const pins = Array.from({ length: 150 }, (_, i) => i);
  const text = formatTrace({ ...emptyTrace, run: "r", pins });
  expect([parseTrace(text).pins.length, formatTrace(parseTrace(text))]).toEqual([100, text]);
});

test("hostile names stay inside their parameter", () => {
  const run = `"><img src=x onerror=alert(1)>&t=1..2#%00`;
  expect(parseTrace(formatTrace({ ...emptyTrace, run })).run).toBe(run);
  expect(parseTrace(formatTrace({ ...emptyTrace, run })).t).toBeNull();
});

test("the panel that comes up by itself is not in the address, another one or none is", () => {
  const sel = { ...emptyTrace, run: "r", sel: "7" };
  const area = { ...sel, area: { t0: 1n, t1: 2n, rows: "" } };
  expect([sel, area].map(usualDock)).toEqual(["details", "area"]);
  expect(usualDock({ ...emptyTrace, beside: [{ run: "", host: "h", shift: 0n, own: { ...emptyOwn, sel: "1" } }] })).toBe("details");
  expect(formatTrace({ ...sel, dock: "details" })).toBe("?run=r&sel=7");
  expect(formatTrace({ ...area, dock: "area" })).toBe("?run=r&sel=7&a=1..2");
  for (const s of [{ ...sel, dock: "" as const }, { ...area, dock: "details" as const }, { ...emptyTrace, run: "r", dock: "rows" as const }])
    expect(parseTrace(formatTrace(s))).toEqual(s);
  expect(formatTrace({ ...sel, dock: "" })).toBe("?run=r&sel=7&dock=no");
});

test("parameters that make no sense are as good as absent", () => {
  const bad = parseTrace("?run=r&t=5..5&sel=abc&a=9..1&fold=x,1-&top=-3&drag=x&dock=x&palette=toString&order=-x&list=-1");
  expect(bad).toEqual({ ...emptyTrace, run: "r" });
  expect(parseTrace("?t=1e9..2e9").t).toBeNull();
  expect(parseTrace(`?t=1..${"9".repeat(40)}`).t).toBeNull();
});

test("rows are written as ranges and read back", () => {
  expect(formatRows([12, 7, 8, 9, 10, 11, 3, 0, 3])).toBe("0,3,7-12");
  expect(parseRows("0,3,7-12")).toEqual([0, 3, 7, 8, 9, 10, 11, 12]);
  expect(parseRows("0-999999999").length).toBe(100_000);
  expect(parseRows(Array(5000).fill("0-999999999").join()).length).toBe(100_000);
  expect(parseRows(null)).toEqual([]);
});
