import { afterEach, expect, test, vi } from "vitest";
import { Api, Problem } from "../src/api/client";
import { Fetcher, type Need } from "../src/views/trace/fetcher";
import { lightPalette } from "../src/model/colour";
import { Names } from "../src/model/names";
import { Slabs } from "../src/model/slabs";
import { int, row, windowOf } from "./encode";

const session = { t0: 0n, t1: 1_000_000n };

interface Asked {
  params: Record<string, string>;
  signal: AbortSignal;
  answer: (body: Uint8Array) => void;
  fail: (e: unknown) => void;
}

function setup() {
  const asked: Asked[] = [];
  const api = new Api("/p/local/");
  api.bytes = (_what, params, signal) =>
    new Promise((answer, fail) => {
      signal!.addEventListener("abort", () => fail(new DOMException("", "AbortError")));
      asked.push({ params: Object.fromEntries(Object.entries(params!).map(([k, v]) => [k, String(v)])), signal: signal!, answer, fail });
    });
  const slabs = new Slabs(1 << 20);
  const loaded = { now: false };
  const fetcher = new Fetcher(api, { run: "r", host: "h" }, slabs, new Names(lightPalette), () => ({ kind: "device", settled: loaded.now, extent: session }));
  return { asked, slabs, fetcher, loaded };
}

const need = (t0: number, span: number, lines = [0, 1]): Need => ({ view: { t0: BigInt(t0), span }, lines, pixels: 1000, session });
const full = (a: Asked, extra: number[] = []) => {
  const { t0, t1, px, rows } = a.params;
  const lines = rows!.includes("-") ? [0, 1] : rows!.split(",").map(Number);
  const rect = [{ begin: 0, duration: 10, name: 1, id: 1 }];
  a.answer(Uint8Array.from([...windowOf(BigInt(t0!), BigInt(t1!), Number(px), ["", "a"], lines.map((l) => row(l, 0, rect, 9, 8))), ...extra]));
};
const settle = () => new Promise((done) => setTimeout(done, 0));

afterEach(() => void vi.useRealTimers());

test("the view and some more is asked for, at the pixels it has, and nothing twice", async () => {
  const { asked, fetcher } = setup();
  fetcher.want(need(400_000, 100_000));
  expect(asked[0]!.params).toMatchObject({ run: "r", host: "h", t0: "350000", t1: "550000", px: "2000", rows: "0-1" });
  fetcher.want(need(400_000, 100_000));
  expect(asked).toHaveLength(1);
  full(asked[0]!);
  await settle();
  fetcher.want(need(420_000, 100_000));
  expect(asked).toHaveLength(1);
});

test("no more than the session is asked for", () => {
  const { asked, fetcher } = setup();
  fetcher.want(need(-50_000, 1_100_000));
  expect(asked[0]!.params).toMatchObject({ t0: "0", t1: "1000000" });
});

test("one request at a time: a useless one is aborted once it had its chance", async () => {
  vi.useFakeTimers();
  const { asked, fetcher } = setup();
  fetcher.want(need(0, 1000));
  fetcher.want(need(900_000, 1000));
  expect(asked).toHaveLength(1);
  expect(asked[0]!.signal.aborted).toBe(false);
  await vi.advanceTimersByTimeAsync(200);
  expect(asked).toHaveLength(2);
  expect(asked[0]!.signal.aborted).toBe(true);
  expect(asked[1]!.params.t0).toBe("899500");
});

test("only lines that are missing are asked for", async () => {
  const { asked, fetcher } = setup();
  fetcher.want(need(0, 1_000_000));
  full(asked[0]!);
  await settle();
  fetcher.want(need(0, 1_000_000, [0, 1, 5]));
  expect(asked[1]!.params.rows).toBe("5");
});

test("rows that did not fit are asked for next", async () => {
  const { asked, fetcher, slabs } = setup();
  fetcher.want(need(0, 1_000_000, [0, 5]));
  full(asked[0]!, [...int(16, 3)]);
  await settle();
  expect(slabs.all(0)).toHaveLength(1);
  expect(slabs.all(5)).toHaveLength(0);
  expect(asked[1]!.params.rows).toBe("5");
});

test("what was answered while loading is asked again when more is there, and only then", async () => {
  const { asked, fetcher } = setup();
  fetcher.want(need(0, 1_000_000));
  full(asked[0]!, [...int(9, 1)]);
  await settle();
  fetcher.want(need(0, 1_000_000));
  expect(asked).toHaveLength(1);
  fetcher.refresh();
  expect(asked).toHaveLength(2);
  full(asked[1]!);
  await settle();
  fetcher.refresh();
  expect(asked).toHaveLength(2);
});

test("a line that is loaded is not asked for again while others still load", async () => {
  const { asked, fetcher, loaded } = setup();
  loaded.now = true;
  fetcher.want(need(0, 1_000_000));
  full(asked[0]!, [...int(9, 1)]);
  await settle();
  fetcher.refresh();
  expect(asked).toHaveLength(1);
});

test("an answer that does not satisfy is not asked for in a circle", async () => {
  const { asked, fetcher } = setup();
  fetcher.want(need(0, 1_000_000));
  // Half of what was asked for.
  asked[0]!.answer(windowOf(0, 500_000, 1000, [""], []));
  await settle();
  expect(asked).toHaveLength(1);
  fetcher.want(need(0, 999_999));
  expect(asked).toHaveLength(2);
});

test("an error stops asking until it is tried again; a busy server is asked later", async () => {
  vi.useFakeTimers();
  const { asked, fetcher } = setup();
  fetcher.want(need(0, 1000));
  asked[0]!.fail(new Problem({ status: 500, detail: "no" }));
  await vi.advanceTimersByTimeAsync(0);
  expect(fetcher.problem.value!.message).toBe("no");
  fetcher.want(need(0, 1000));
  expect(asked).toHaveLength(1);
  fetcher.retry();
  expect(asked).toHaveLength(2);
  asked[1]!.fail(new Problem({ status: 503, detail: "busy", retryAfter: 3 }));
  await vi.advanceTimersByTimeAsync(2900);
  expect(asked).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(200);
  expect(asked).toHaveLength(3);
  expect(fetcher.problem.value).toBeNull();
});

test("an answer that makes no sense is an error with a sentence", async () => {
  const { asked, fetcher } = setup();
  fetcher.want(need(0, 1000));
  asked[0]!.answer(Uint8Array.from([0x2a, 0x7f]));
  await settle();
  expect(fetcher.problem.value!.message).toMatch(/^window: 127 bytes announced/);
});

test("after the end nothing is asked and what is under way is aborted", async () => {
  const { asked, fetcher } = setup();
  fetcher.want(need(0, 1000));
  fetcher.stop();
  expect(asked[0]!.signal.aborted).toBe(true);
  await settle();
  fetcher.refresh();
  expect(asked).toHaveLength(1);
  expect(fetcher.problem.value).toBeNull();
});
