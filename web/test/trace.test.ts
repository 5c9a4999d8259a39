import { effect } from "@preact/signals";
import { expect, test, vi } from "vitest";
vi.stubGlobal("window", { location: { search: "", pathname: "/p/local/trace" }, addEventListener: () => undefined, matchMedia: () => ({ matches: false, addEventListener: () => undefined }) });
vi.stubGlobal("document", { documentElement: { dataset: {}, style: {} }, addEventListener: () => undefined, visibilityState: "visible" });
vi.mock("../src/model/theme", async () => {
  const { signal } = await import("@preact/signals");
  return { palette: signal("usual"), paletteToName: signal(null), namePalette: () => undefined };
});
vi.mock("../src/api/events", () => ({ watch: () => () => undefined }));
import type { Api } from "../src/api/client";
import type { Tracks } from "../src/api/types";
import { emptyOwn, emptyTrace, formatTrace } from "../src/model/url";
import { Trace } from "../src/views/trace/trace";

const plane = (n: number, name: string, lines: number, events = 1) => ({
  plane: n, name, state: "ready", events, kind: "device", lines_total: lines,
  lines: Array.from({ length: lines }, (_, i) => ({ line: n * 100 + i, id: 0, name: `line ${i}`, events, lanes: 1, begin_ps: 0, end_ps: 1, derived: false, odd: 0, overflow: 0 })),
});
const tracksOf = (end: number, more: Partial<Tracks> = {}): Tracks =>
  ({ begin_ps: 0, end_ps: end, loading: false, next: null, rows: 3, planes: [plane(0, "TPU:0", 3)], events: 3, planes_done: 1, bytes_done: 1, ...more }) as unknown as Tracks;
const api = (json: (path: string, q: Record<string, unknown>) => Promise<unknown> = () => new Promise(() => undefined)): Api => ({ json, url: () => "", root: "/p/local/", get: () => new Promise(() => undefined) }) as unknown as Api;
const arrive = (t: Trace, tracks: Tracks): void => (t.loader as unknown as { show: (t: Tracks) => void }).show(tracks);
const made = (answers?: Parameters<typeof api>[0]): Trace => new Trace(api(answers), { run: "r", host: "h" });

test("a time that only a timeline beside has is kept, whichever comes first", () => {
  const t = made();
  const b = { run: "", host: "g", shift: 0n, own: emptyOwn };
  t.apply({ ...emptyTrace, run: "r", host: "h", t: { t0: 5000n, t1: 6000n }, beside: [b] });
  arrive(t, tracksOf(1000));
  expect(t.view.peek()).toEqual({ t0: 5000n, span: 1000 });
  arrive(t.beside.peek()[0]!, tracksOf(9000));
  expect(t.view.peek()).toEqual({ t0: 5000n, span: 1000 });
  expect(t.url().t).toEqual({ t0: 5000n, t1: 6000n });
});

test("a time that none has is left once all are there", () => {
  const t = made();
  t.apply({ ...emptyTrace, run: "r", host: "h", t: { t0: 5000n, t1: 6000n }, beside: [{ run: "", host: "g", shift: 0n, own: emptyOwn }] });
  arrive(t, tracksOf(1000));
  arrive(t.beside.peek()[0]!, tracksOf(1000));
  expect(t.view.peek().t0).toBeLessThanOrEqual(1000n);
});

test("a step that changes nothing is none, and what moves next is no entry", () => {
  const t = made();
  arrive(t, tracksOf(1000));
  t.chooseTab("rows");
  const steps: boolean[] = [];
  const end = effect(() => void (formatTrace(t.url()), steps.push(t.step)));
  const nothing = [() => t.chooseTab("rows"), () => t.whole(), () => t.setArea(null), () => t.foldAll(false), () => t.deselect()];
  for (const f of nothing) f();
  expect(t.step).toBe(false);
  t.chooseTab("marks");
  expect([steps.at(-1), t.step]).toEqual([true, false]);
  const hit = { id: 7, name: "x", line: 1, lane: 0, begin_ps: 1, duration_ps: 2 } as never;
  t.chooseListed(hit);
  t.chooseListed(hit);
  expect(t.step).toBe(false);
  end();
});

test("an event of the list is chosen without another zoom", () => {
  const t = made();
  arrive(t, tracksOf(1_000_000));
  t.show({ t0: 0n, span: 500_000 });
  t.chooseListed({ id: 7, name: "x", line: 1, lane: 0, begin_ps: 10, duration_ps: 2 } as never);
  expect(t.view.peek()).toEqual({ t0: 0n, span: 500_000 });
  t.chooseListed({ id: 8, name: "x", line: 1, lane: 0, begin_ps: 800_000, duration_ps: 2 } as never);
  expect(t.view.peek().span).toBe(500_000);
  expect(t.view.peek().t0).toBeGreaterThan(0n);
});

test("where one scrolled to among folded groups is in the address", () => {
  const t = made();
  t.size.value = { width: 100, height: 100, scale: 1 };
  arrive(t, tracksOf(1000, { planes: Array.from({ length: 40 }, (_, i) => plane(i, `p${i}`, 2)) } as never));
  t.foldAll(true);
  t.scrollBy(260);
  const { top } = t.url();
  expect(top).toBe("p10");
  const again = made();
  again.size.value = { width: 100, height: 100, scale: 1 };
  again.apply({ ...emptyTrace, ...t.url() });
  arrive(again, tracksOf(1000, { planes: Array.from({ length: 40 }, (_, i) => plane(i, `p${i}`, 2)) } as never));
  expect(again.scrollTop.peek()).toBe(260);
});

test("a layout is neither kept nor applied with rows that are not here", async () => {
  const t = made(() => Promise.reject(new Error("no more")));
  arrive(t, tracksOf(1000, { rows: 3, next: "x" } as never));
  t.hidden.value = new Set([1]);
  t.pins.value = [7000];
  expect(await t.layout("a")).toBeNull();
  expect(t.said.peek()).toMatch(/1 row of it is not among the first 3/);
  t.pins.value = [2];
  const kept = (await t.layout("a"))!;
  expect([kept.pins.length, kept.hide.length]).toEqual([1, 1]);
  t.hidden.value = new Set();
  t.loader.find.value = "tpu";
  expect(await t.layout("b")).toBeNull();
  await t.arrange(kept);
  expect([t.hidden.peek().size, t.said.peek()]).toEqual([0, "Only rows of a name are shown: clear Find rows first."]);
  t.loader.find.value = "";
  await t.arrange({ ...kept, pins: [["other", "x", 0]] });
  expect([t.hidden.peek().size, t.pins.peek()]).toEqual([0, [2]]);
  await t.arrange(kept);
  expect(t.hidden.peek()).toEqual(new Set([1]));
});

test("rows that come in parts are waited for", async () => {
  const t = made(() => Promise.resolve(tracksOf(1000, { rows: 2, planes: [plane(70, "late", 2)] } as never)));
  arrive(t, tracksOf(1000, { next: "x" } as never));
  t.pins.value = [7001];
  expect((await t.layout("a"))!.pins).toEqual([["late", "line 1", 0]]);
});

test("no more rows are pinned than an address holds", () => {
  const t = made();
  arrive(t, tracksOf(1000));
  t.pins.value = Array.from({ length: 100 }, (_, i) => i + 500);
  t.togglePin(1);
  expect([t.pins.peek().length, t.said.peek()]).toEqual([100, "100 rows are pinned: that is the most."]);
  t.togglePin(500);
  t.togglePin(1);
  expect(t.pins.peek().includes(1)).toBe(true);
});
