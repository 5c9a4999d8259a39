import { expect, test } from "vitest";
import { Api, Problem } from "../src/api/client";
import { Search } from "../src/views/trace/search";

const hit = (id: number) => ({ id, line: 1, lane: 0, name: "x", begin_ps: id * 10, duration_ps: 5 });

/** A search whose server finds `recorded` events, and `derived` ones when it is asked for these; null: there are no such lines. */
function setup(recorded: number, derived: number | null) {
  const asked: Record<string, unknown>[] = [];
  const api = new Api("/p/local/");
  api.json = async <T>(_what: string, params?: Record<string, unknown>): Promise<T> => {
    asked.push(params!);
    if (params!["derived"] && derived === null) throw new Problem({ status: 413, code: "too_large", detail: "too many planes" });
    const total = recorded + (params!["derived"] ? derived! : 0);
    return { q: params!["q"], total, lines: [], hits: total ? [hit(asked.length)] : [], more: total > 1, loading: false } as T;
  };
  return { asked, search: new Search(api, { run: "r", host: "h" }) };
}

async function found(search: Search): Promise<number> {
  search.set("dot", true);
  while (search.busy.value) await new Promise((done) => setTimeout(done, 1));
  return search.answer.value!.total;
}

test("derived lines are looked through only where no recorded event is called so", async () => {
  const { asked, search } = setup(3, 4);
  expect(await found(search)).toBe(3);
  expect(asked.map((p) => p["derived"])).toEqual([undefined]);
});

test("hits in derived lines are listed and walked there, until something else is searched for", async () => {
  const { asked, search } = setup(0, 4);
  expect(await found(search)).toBe(4);
  await search.more();
  await search.step(1, 0n, null, { first: 0n, last: 100n });
  expect(asked.map((p) => p["derived"])).toEqual([undefined, "1", "1", "1"]);
  search.set("other", true);
  while (search.busy.value) await new Promise((done) => setTimeout(done, 1));
  expect(asked.slice(4).map((p) => p["derived"])).toEqual([undefined, "1"]);
});

test("a profile without derived lines has no hits, and no problem", async () => {
  const { search } = setup(0, null);
  expect(await found(search)).toBe(0);
  expect(search.problem.value).toBeNull();
});
