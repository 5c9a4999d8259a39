import { expect, test } from "vitest";
import type { Report } from "../src/api/report";
import { asReport } from "../src/api/report";
import { FigureStore, figuresOf, isComplete, parseKept } from "../src/model/figures";

const report = (values: Record<string, number | string | null>): Report => asReport({
  metrics: Object.entries(values).map(([id, value]) => ({ id, label: id, unit: "", value, reason: value === null ? `no ${id}` : null, note: null, definition: "", spread: null })),
});

class Memory {
  text: string | null = null;
  getItem(): string | null { return this.text; }
  setItem(_: string, text: string): void { this.text = text; }
}

test("figures come from two reports, and what is missing says why", () => {
  expect(figuresOf(report({ device_type: "TPU", step_time_mean: 5e9 }), report({ peak_memory: 7 })))
    .toEqual({ device: "TPU", step: 5e9, memory: 7, why: {} });
  const f = figuresOf(report({ device_type: null, step_time_mean: null }), null);
  expect(f).toMatchObject({ device: null, step: null, memory: null });
  expect(f.why).toEqual({ device: "no device_type", step: "no step_time_mean", memory: "the profile does not say" });
});

test("what nobody asked for yet can still be asked for, and does not drive out what is known", () => {
  const store = new FigureStore(new Memory());
  const part = figuresOf(report({ device_type: "TPU", step_time_mean: 5 }), undefined);
  expect(isComplete(part)).toBe(false);
  store.put("/", "r", 10, { ...part, memory: 99, why: {} });
  store.put("/", "r", 10, part);
  expect(store.get("/", "r", 10)).toMatchObject({ step: 5, memory: 99 });
  expect(isComplete(store.get("/", "r", 10)!)).toBe(true);
});

test("figures of files that have changed since are not shown", () => {
  const memory = new Memory();
  new FigureStore(memory).put("/", "r", 10, { device: "x", step: 1, memory: null, why: {} });
  const again = new FigureStore(memory);
  expect(again.get("/", "r", 10)).toMatchObject({ device: "x", step: 1 });
  expect(again.get("/", "r", 11)).toBeNull();
  expect(again.get("/other/", "r", 10)).toBeNull();
});

test("what is kept is bounded, and anything else there is dropped", () => {
  const memory = new Memory();
  const store = new FigureStore(memory);
  for (let i = 0; i < 500; i++) store.put("/", `r${i}`, 1, { device: null, step: null, memory: null, why: {} });
  expect(parseKept(memory.text).size).toBe(400);
  expect(store.get("/", "r499", 1)).not.toBeNull();
  expect(store.get("/", "r0", 1)).toBeNull();
  for (const bad of ["{", "7", '{"a":1}', '[["k",{"bytes":1,"step":"<b>","memory":null,"device":null,"why":{}}]]', '[[1,{}],null]'])
    expect(parseKept(bad).size).toBe(0);
});
