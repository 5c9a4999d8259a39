// The pages of tools: on the sample profiles with the real server, and on reports made here.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { inkOf, Logdir, missing, openPage, realProfile, shots, startBrowser, startServer, waitFor } from "./harness.mjs";
import { FakeCaptures } from "./captures.mjs";
import { decode, difference, encodeSmall } from "./png.mjs";
import { MARKUP, plainProfile } from "./profile.mjs";
import { bufferTable, everything, opTable, suggestions } from "./reports.mjs";

const reason = missing();
const web = join(dirname(fileURLToPath(import.meta.url)), "../../web");
const goldens = join(dirname(fileURLToPath(import.meta.url)), "goldens");
const axe = join(web, "node_modules/axe-core/axe.min.js");
const SAMPLES = {
  synth_tpu_train: ["tpu-worker-0", "tpu-worker-1"], synth_gpu_train: ["gpu-0"], synth_inference: ["serving-0"], synth_megascale: ["slice-0", "slice-1"],
  synth_tpu_counters: ["tpu-0"], tpu_v6e_inference: ["host0"],
};
const PLAIN = "plain";
const CPU = "only a host";

describe("the pages of tools", { skip: reason || false, timeout: 600_000 }, () => {
  let logdir, server, browser, base;
  const runs = [];

  before(async () => {
    mkdirSync(shots, { recursive: true });
    logdir = new Logdir();
    for (const [run, hosts] of Object.entries(SAMPLES)) {
      for (const host of hosts) {
        const bytes = realProfile(run, host);
        if (bytes) logdir.add(run, host, bytes);
        if (bytes && !runs.includes(run)) runs.push(run);
      }
    }
    logdir.add(PLAIN, "w-0", plainProfile(20));
    logdir.add(PLAIN, "w-1", plainProfile(20));
    const cpu = realProfile("jax_cpu_train", "trainer-0");
    if (cpu) logdir.add(CPU, "trainer-0", cpu);
    server = await startServer(logdir.path);
    browser = await startBrowser();
    base = `${server.url}/p/local/`;
  });

  after(async () => {
    await browser?.close();
    await server?.stop();
    logdir?.remove();
  });

  const ready = (page) => page.waitForSelector(".tool-page[aria-busy=false] h1");

  /** A page whose reports are those of `answer(query)`; null: the server's. */
  async function openWith(answer, options = {}) {
    const opened = await openPage(browser, server.url, options);
    await opened.page.route(/\/api\/v1\/report\?/, async (route) => {
      const q = new URL(route.request().url()).searchParams;
      const made = q.get("tool") === "tools" ? null : answer(q);
      if (made) await route.fulfill({ json: made });
      else await route.continue();
    });
    return opened;
  }

  const fixed = (more) => (q) => everything({ tool: q.get("tool"), ...more });

  test("every tool of every sample has its page, in both themes, and asks nobody else", async () => {
    const problems = [];
    for (const colorScheme of ["light", "dark"]) {
      const { page, check, close } = await openPage(browser, server.url, { colorScheme });
      for (const run of colorScheme === "light" ? [PLAIN, ...runs] : [runs[0] ?? PLAIN]) {
        await page.goto(`${base}overview_page?run=${run}`);
        await ready(page);
        await page.waitForSelector(".rail-item.off");
        const tools = await page.locator(".rail-item:not(.off)").evaluateAll((links) =>
          links.map((a) => new URL(a.href).pathname.split("/").pop()).filter((p) => p && !["compare", "captures", "admin", "trace"].includes(p)));
        assert.ok(tools.length >= 5, `${run}: ${tools}`);
        for (const tool of tools) {
          await page.evaluate((t) => document.querySelector(`.rail a[href*="/${t}?"]`).click(), tool);
          await ready(page);
          for (const text of await page.locator(".problem").allInnerTexts()) problems.push(`${run} ${tool}: ${text.replace(/\s+/g, " ")}`);
          const wide = await page.evaluate(() => document.querySelector(".tool-page").scrollWidth - document.querySelector(".tool-page").clientWidth);
          if (wide > 1) problems.push(`${run} ${tool}: ${wide} px wider than the page`);
          if (run === (runs[0] ?? PLAIN)) await page.screenshot({ path: join(shots, `tool-${tool}-${colorScheme}.png`) });
        }
      }
      problems.push(...(await check(/status of 404/)));
      await close();
    }
    assert.deepEqual(problems, []);
  });

  test("what a run has no data for is greyed, and the page says why and where to go instead", { skip: !realProfile("jax_cpu_train", "trainer-0") }, async () => {
    const { page, close } = await openPage(browser, server.url);
    await page.goto(`${base}overview_page?run=${encodeURIComponent(CPU)}`);
    const off = page.locator(".rail-item.off", { hasText: "GPU kernels" });
    await off.waitFor();
    assert.match(await off.getAttribute("aria-label"), /no data: the run has no GPU/);
    await off.click();
    await page.waitForSelector(".tool-page[aria-busy=false]");
    await close();
  });

  test("every part of a report is drawn", async () => {
    const { page, check, close } = await openWith(fixed());
    await page.goto(`${base}overview_page?run=${PLAIN}`);
    await ready(page);
    assert.match(await page.locator(".verdict").innerText(), /Input bound/);
    assert.equal(await page.locator(".tile").count(), 4); // those of the environment stand together
    const environment = await page.locator(".environment").innerText();
    assert.match(environment, /Hosts\s+2\s+w-0, w-1[\s\S]*Cores\s+4[\s\S]*Device\s+name 2[\s\S]*Peak FLOP rate\s+918\.0 T[\s\S]*Clock offset\s+n\/a\s+not in the profile: capture/);
    assert.match(await page.locator(".unknown").innerText(), /Peak memory[\s\S]*n\/a not in the profile: capture with the host tracer/);
    assert.match(await page.locator('[data-metric="step_time_mean"]').innerText(), /12\.35 ms[\s\S]*11\.00 ms to 16\.00 ms[\s\S]*most on/);
    await page.click('[data-metric="steps"] .define');
    assert.match(await page.locator('[data-metric="steps"]').innerText(), /Definition: Steps over all cores/);
    assert.match(await page.locator(".coverage").innerText(), /2 of 3 hosts · 4 cores/);
    await page.click("text=Which, and why");
    assert.match(await page.locator(".missing").innerText(), /ends early[\s\S]*corrupt_profile at byte 123/);
    assert.equal(await page.locator(".notes > li").count(), 3);
    assert.ok((await page.locator(".chart svg rect").count()) > 40, "bars");
    assert.equal(await page.locator(".heat canvas").count(), 1);
    assert.equal(await page.locator(".tree tbody tr").count() > 2, true);
    assert.ok((await page.locator(".text-lines span").count()) < 120, "only lines in sight are in the page");
    await page.locator(".chart .plot").first().hover({ position: { x: 300, y: 100 } });
    assert.match(await page.locator(".chart-tip").first().innerText(), /Step \d+[\s\S]*Together/);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("steps chosen in a chart, or a time in the timeline, are what every page is about", async () => {
    const asked = [];
    const { page, check, close } = await openWith((q) => {
      asked.push(q);
      const part = q.get("steps") ?? q.get("t0");
      return { ...everything({ tool: q.get("tool"), hosts: ["w-0"] }), ...(part && q.get("tool") !== "roofline_model" ? { range: { part } } : {}) };
    });
    const chip = page.locator(".range-chip");
    const param = (k) => new URL(page.url()).searchParams.get(k);
    await page.goto(`${base}overview_page?run=${PLAIN}&host=w-0`);
    await ready(page);
    assert.equal(await chip.count(), 0);
    const plot = await page.locator(".chart .plot").first().boundingBox();
    await page.mouse.move(plot.x + plot.width * 0.4, plot.y + 80);
    await page.mouse.down();
    await page.mouse.move(plot.x + plot.width * 0.6, plot.y + 90, { steps: 5 });
    await page.mouse.up();
    await waitFor("the steps are in the address", () => /^\d+-\d+$/.test(param("steps") ?? ""));
    const steps = param("steps");
    await ready(page);
    assert.match(await chip.innerText(), new RegExp(`only steps ${steps.replace("-", " to ")}`));
    await waitFor("the server was asked for them", () => asked.some((q) => q.get("tool") === "overview_page" && q.get("steps") === steps));
    // A page whose answer is about the whole run does not claim otherwise.
    await page.click(".rail a[href*='/roofline_model?']");
    await ready(page);
    await page.waitForSelector(".range-chip.ignored");
    assert.equal(param("steps"), steps);
    assert.match(await page.locator(".data .go").first().getAttribute("href"), new RegExp(`&steps=${steps}`));
    await chip.locator("button").click();
    await waitFor("the whole run again", async () => param("steps") === null && (await chip.count()) === 0);

    // By keys.
    await page.goto(`${base}overview_page?run=${PLAIN}&host=w-0`);
    await ready(page);
    await page.locator(".chart .plot").first().focus();
    for (const key of ["ArrowRight", "ArrowRight", "Shift+ArrowRight", "Shift+ArrowRight", "Enter"]) await page.keyboard.press(key);
    await waitFor("three steps", () => param("steps") === "1-3");

    // From the timeline to the pages, and back.
    await page.goto(`${base}trace?run=${PLAIN}&host=w-0&a=1000000..5000000&op=name%202`);
    await page.click("text=All pages: only this time");
    await waitFor("the time is in the address", () => param("range") === "1000000..5000000");
    assert.match(await chip.innerText(), /only 4\.000 µs/);
    assert.equal(param("op"), "name 2");
    await page.click(".rail a[href*='/hlo_stats?']");
    await ready(page);
    assert.equal(param("range"), "1000000..5000000");
    assert.ok(asked.some((q) => q.get("tool") === "hlo_stats" && q.get("t0") === "1000000" && q.get("t1") === "5000000"));
    await page.screenshot({ path: join(shots, "range-light.png") });
    await page.goBack();
    await page.waitForSelector(".drawing canvas");
    await chip.locator("button").click();
    await waitFor("the whole run", () => param("range") === null);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("the server's own reports are about the chosen steps, and those of programs say that they are not", { skip: !realProfile("synth_tpu_train", "tpu-worker-0") && "the sample is not there" }, async () => {
    const { page, check, close } = await openPage(browser, server.url);
    await page.goto(`${base}pod_viewer?run=synth_tpu_train&steps=2-4`);
    await ready(page);
    assert.equal((await page.locator('[data-metric="steps"] .tile-value').innerText()).trim(), "3");
    assert.match(await page.locator(".range-chip a").getAttribute("href"), /\/trace\?run=synth_tpu_train.*t=\d+\.\.\d+&steps=2-4/);
    await page.click(".rail a[href*='/memory_viewer?']");
    await page.waitForSelector(".range-chip.ignored");
    await page.click(".rail a[href*='/overview_page?']");
    await ready(page);
    assert.equal(await page.locator(".range-chip.ignored").count(), 0);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("chips stand in the torus by step and measure, in the address, and lead to the timeline", { skip: !realProfile("synth_tpu_train", "tpu-worker-0") && "the sample is not there" }, async () => {
    const { page, check, close } = await openPage(browser, server.url);
    const param = (name) => new URL(page.url()).searchParams.get(name);
    await page.goto(`${base}pod_viewer?run=synth_tpu_train`);
    await ready(page);
    const map = page.locator(".torus-plot");
    const cores = await page.locator(".torus-chip").count();
    assert.ok(cores >= 2);
    assert.match(await map.getAttribute("aria-label"), new RegExp(`${cores} cores`));
    assert.match(await page.locator(".torus-part .table-note").innerText(), /^Assumed: /);
    await page.locator(".torus-part .switch").getByText("Waiting", { exact: true }).click();
    await waitFor("the measure", () => param("measure") === "waiting");
    await page.locator(".torus-steps input").focus();
    await page.keyboard.press("ArrowRight");
    await waitFor("the first step", () => param("step") !== null);
    const step = param("step");
    await waitFor("its times", async () => (await page.locator(".torus-steps output").innerText()) === `step ${step}`);
    const size = page.locator(".torus-size input");
    await size.fill("1x1");
    assert.equal(await size.getAttribute("aria-invalid"), "true");
    await size.press("Enter");
    assert.equal(param("topology"), null);
    await size.fill("1x9");
    await size.press("Enter");
    await waitFor("the size", async () => param("topology") === "1x9" && /1 x 9/.test(await page.locator(".torus-part .table-note").innerText()));
    await page.reload();
    await ready(page);
    assert.equal(await page.locator(".torus-steps output").innerText(), `step ${step}`);
    await map.focus();
    await page.keyboard.press("ArrowRight");
    await page.waitForSelector(".torus .chart-tip");
    await page.keyboard.press("Enter");
    await waitFor("the timeline at the step", () => /\/trace\?/.test(page.url()) && /^-?\d+\.\.\d+$/.test(param("t") ?? ""));
    assert.deepEqual(await check(), []);
    await close();
  });

  test("a collective between slices shows what it is made of, and its parts lead to each other in the timeline", { skip: !realProfile("synth_megascale", "slice-0") && "the sample is not there" }, async () => {
    const { page, check, close } = await openPage(browser, server.url);
    const param = (name) => new URL(page.url()).searchParams.get(name);
    await page.goto(`${base}megascale_stats?run=synth_megascale`);
    await ready(page);
    const part = page.locator('section[aria-label="Actions of a collective"]');
    assert.equal(await part.locator(".lane-action").count(), 8);
    assert.equal(await part.locator(".torus-arrow").count(), 8);
    const second = await part.locator("select").nth(1).locator("option").nth(1).getAttribute("value");
    await part.locator("select").nth(1).selectOption(second);
    await waitFor("the other occurrence", async () => param("occurrence") === second && /What one/.test(await part.locator("h2").innerText()));
    await page.goBack();
    await waitFor("the longest again", () => param("occurrence") === null);
    await ready(page);
    await part.locator(".lanes-plot").focus();
    await page.keyboard.press("ArrowRight");
    await waitFor("the first op", async () => /send/.test(await part.locator(".chart-tip").innerText()));
    await page.keyboard.press("Enter");
    await waitFor("the op in the timeline", () => /\/trace\?/.test(page.url()) && param("q") === "send.1");
    await page.goto(`${base}trace?run=synth_megascale&host=slice-0`);
    await page.waitForSelector(".drawing canvas");
    const found = await (await page.request.get(`${server.url}/api/v1/search?run=synth_megascale&host=slice-0&q=send.1`)).json();
    await page.goto(`${base}trace?run=synth_megascale&host=slice-0&sel=${found.hits[0].id}`);
    const near = page.locator("details.near", { hasText: "The transfer between slices" });
    await near.locator("summary").click();
    await waitFor("its parts", async () => (await near.locator("h3").allInnerTexts()).join() === "Follows,Leads to,Other parts");
    assert.deepEqual((await near.locator("ul").first().locator("a").allInnerTexts()).sort(), ["MegaScale: Device to Host Action", "send-done.1"]);
    await near.getByText("MegaScale: Device to Host Action").click();
    await waitFor("that action", () => (param("q") ?? "").includes("Device to Host"));
    assert.deepEqual(await check(), []);
    await close();
  });

  test("a table of 50,000 rows filters, sorts, hides columns and keeps it all in the address", async () => {
    const whole = opTable(50_000);
    const big = { ...whole, columns: whole.columns.slice(0, 7), rows: whole.rows.map((r) => r.slice(0, 7)) };
    const { page, check, close } = await openWith((q) => ({ ...everything({ tool: q.get("tool") }), tables: [big], series: [], tree: null, text: null, notes: [], missing_hosts: [] }));
    await page.goto(`${base}hlo_stats?run=${PLAIN}`);
    await ready(page);
    assert.ok((await page.locator(".data tbody tr").count()) < 80, "rows in sight only");
    assert.equal(await page.locator(".data").getAttribute("aria-rowcount"), "50001");
    await page.keyboard.press("/");
    await page.keyboard.type("category:3 -fusion.13 occurrences<100");
    await waitFor("nine rows", async () => (await page.locator(".table-count").first().innerText()).startsWith("9 of"));
    assert.match(decodeURIComponent(new URL(page.url()).search), /q=category:3/);
    await page.fill("[data-filter]", "speed>9");
    assert.match(await page.locator(".filter-error").innerText(), /no column “speed”/);
    await page.fill("[data-filter]", "");
    const took = await page.evaluate(async () => {
      const button = [...document.querySelectorAll(".sorter")].find((b) => b.textContent.includes("Occurrences"));
      const t0 = performance.now();
      button.click();
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      return performance.now() - t0;
    });
    console.log(`# 50,000 rows are sorted and drawn within ${took.toFixed(0)} ms`);
    assert.match(page.url(), /sort=-occurrences/);
    assert.match(await page.locator(".data tbody tr:not(.spacer)").first().innerText(), /fusion\.49999/);
    const width = () => page.locator(".data th", { hasText: "Occurrences" }).evaluate((th) => th.offsetWidth);
    const narrow = await width();
    await page.locator(".sorter", { hasText: "Occurrences" }).focus();
    for (let i = 0; i < 4; i++) await page.keyboard.press("Shift+ArrowRight");
    await waitFor("keys make the column wider", async () => (await width()) > narrow + 30);
    assert.match(page.url(), /sort=-occurrences/, "and sort nothing");
    await page.click("text=Columns");
    await page.click(".chooser label:has-text('Category')");
    assert.match(page.url(), /cols=category/);
    assert.equal(await page.locator(".data th", { hasText: "Category" }).count(), 0);
    await page.reload();
    await ready(page);
    assert.match(await page.locator(".data tbody tr:not(.spacer)").first().innerText(), /fusion\.49999/);
    assert.equal(await page.locator(".data th", { hasText: "Category" }).count(), 0);
    const [download] = await Promise.all([page.waitForEvent("download"), page.click("text=CSV")]);
    const csv = readFileSync(await download.path(), "utf8").split("\r\n");
    assert.equal(csv.length, 50_002);
    await page.selectOption("[aria-label='Group HLO ops by']", "category");
    await waitFor("ten groups", async () => (await page.locator(".data tbody tr").count()) === 10);
    assert.match(await page.locator(".data tbody tr").first().innerText(), /category 9\s+5.?000\s/);
    assert.equal(new URL(page.url()).searchParams.get("group"), "category");
    await page.locator(".data tbody tr", { hasText: "category 3" }).click();
    await waitFor("the rows of that group", async () => /^5.?000 of 50/.test(await page.locator(".table-count").first().innerText()));
    assert.equal(new URL(page.url()).searchParams.get("q"), 'category="category 3"');
    await page.goBack();
    await waitFor("the groups again", async () => (await page.locator(".data tbody tr").count()) === 10);
    assert.match(csv[0], /^op,category,occurrences,self_time \(ps\)/);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("rows are walked and chosen by keys, and what was chosen is chosen everywhere", async () => {
    const { page, check, close } = await openWith(fixed());
    await page.goto(`${base}hlo_stats?run=${PLAIN}`);
    await ready(page);
    await page.locator('section[aria-label="HLO ops"] .table-scroll').focus();
    for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "Enter"]) await page.keyboard.press(key);
    await waitFor("an op is in the address", () => new URL(page.url()).searchParams.get("op") === "name 2");
    assert.match(await page.locator(".op-strip code").innerText(), /name 2/);
    assert.match(await page.locator(".row-card").first().innerText(), /jit_f\(42\)/);
    await page.keyboard.press("g");
    await page.waitForSelector(".go-hint");
    await page.keyboard.press("r");
    await ready(page);
    assert.match(page.url(), /roofline_model\?run=plain&op=name(%20|\+)2&program=42/);
    assert.equal(await page.locator(".bubble.chosen").count(), 1);
    assert.equal(await page.locator("tr.chosen").count() > 0, true);
    const href = await page.locator("tr.chosen .go").first().getAttribute("href");
    assert.match(href, /\/trace\?run=plain.*t=-?\d+\.\.\d+/);
    await page.goBack();
    await page.goBack();
    await waitFor("nothing is chosen", async () => (await page.locator(".op-strip").count()) === 0);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("a row opens the timeline where its op ran", async () => {
    const { page, check, close } = await openWith((q) => ({ ...everything({ tool: q.get("tool"), hosts: ["w-0"] }), tables: [opTable(3, () => 1, (i) => ["fusion.1", "copy.2", "all-reduce.3"][i])] }));
    await page.goto(`${base}hlo_stats?run=${PLAIN}&host=w-0`);
    await ready(page);
    await page.locator(".data .go").nth(1).click();
    await page.waitForSelector(".drawing canvas");
    const at = new URL(page.url()).searchParams;
    assert.equal(at.get("q"), "copy.2");
    assert.equal(at.get("host"), "w-0");
    assert.deepEqual(await check(), []);
    await close();
  });

  test("a kernel of a GPU and an operation of the framework are found in the timeline, too", { skip: !realProfile("synth_gpu_train", "gpu-0") && "the sample is not there" }, async () => {
    const { page, check, close } = await openPage(browser, server.url);
    for (const [tool, row, name] of [["kernel_stats", "sm80_xmma_gemm_f16f16_f16f32", "sm80_xmma_gemm_f16f16_f16f32"], ["framework_op_stats", "train/conv/Conv2D", "Conv2D"]]) {
      await page.goto(`${base}${tool}?run=synth_gpu_train`);
      await ready(page);
      await page.locator(".data tr", { hasText: row }).first().locator(".go").click();
      await page.waitForSelector(".drawing canvas");
      assert.equal(new URL(page.url()).searchParams.get("q"), name);
      await waitFor(`${name} is found`, async () => /[1-9]\d*$/.test(await page.locator(".search output").textContent()));
    }
    assert.deepEqual(await check(), []);
    await close();
  });

  test("counters stand chip by chip and sample by sample, are found by expressions, and one has a link; a unit says what it is", { skip: !realProfile("synth_tpu_counters", "tpu-0") && "the sample is not there" }, async () => {
    const { page, check, close } = await openPage(browser, server.url);
    const at = (name) => new URL(page.url()).searchParams.get(name);
    await page.goto(`${base}utilization_viewer?run=synth_tpu_counters&unit=Scalar%20Unit`);
    await ready(page);
    assert.match(await page.locator(".unit-meaning").innerText(), /Scalar Unit[\s\S]*steers the program/);
    await page.locator(".panel-head select").nth(1).selectOption("1001");
    await page.waitForSelector("text=Units by devices: sample 1000 less sample 1001");
    await page.click(".unit-meaning a");
    await page.waitForSelector("text=Chips: sample 1000 less sample 1001");
    assert.equal(at("q"), "counter:/scalar_alu_instruction_[01]$/");
    await waitFor("both slots of each core", async () => (await page.locator(".data tbody tr").count()) === 6);
    await page.locator(".data tbody tr").first().click();
    await page.waitForSelector("text=One counter, everywhere");
    assert.match(at("counter"), /scalar_alu_instruction_[01]$/);
    const [link, text] = [page.url(), await page.locator(".counter-part .data").innerText()];
    await page.goto("about:blank");
    await page.goto(link);
    await page.waitForSelector("text=One counter, everywhere");
    assert.equal(await page.locator(".counter-part .data").innerText(), text);
    await page.goto(`${base}perf_counters?run=synth_tpu_counters&q=counter:/scalar_alu_instruction_[01]$/`);
    await page.locator(".data tbody tr", { hasText: "kernel_1" }).first().click(); // kernel_0 has the same counter
    await page.waitForSelector("text=One counter, everywhere");
    await page.waitForSelector(".row-card:has-text('kernel_1')");
    assert.deepEqual(await check(), []);
    await close();
  });

  const pallas = (chip) => realProfile(`../tpu/profiles/pallas_${chip}`, "tpu-job-w-0");

  test("a custom kernel tells what it does inside, run by run, part by part, and beside another version", { skip: !(pallas("v5e") && pallas("v6e")) && "the samples are not there" }, async () => {
    const added = ["v5e", "v6e"].map((chip) => [`kernels_${chip}`, pallas(chip)]);
    for (const [run, bytes] of added) logdir.add(run, "tpu-job-w-0", bytes);
    const { page, check, close } = await openPage(browser, server.url);
    const at = (name) => new URL(page.url()).searchParams.get(name);
    try {
      await page.goto(`${base}kernel_utilization?run=kernels_v6e`);
      await ready(page);
      await page.locator(".head-row select").first().selectOption({ label: "tiled_matmul.4, 1.029 ms" });
      await waitFor("the kernel is the chosen op", () => at("op") === "tiled_matmul.4" && /^\d+$/.test(at("program") ?? ""));
      await page.waitForSelector(".verdict >> text=64.5 % of what is recorded of the run of tiled_matmul.4: computes.");
      const causes = page.locator("table.causes");
      assert.match(await causes.innerText(), /Computes\s+429\.4 ns\s+64\.5 %[\s\S]*Loads and stores only[\s\S]*?202\.2 ns\s+30\.3 %[\s\S]*Not recorded/);
      assert.match(await page.locator(".stack").innerText(), /pallas_kernels\.py:28 in tiled_matmul/);
      assert.match(await page.locator("section[aria-label='Instructions by source'] .data, .table-block:has-text('Instructions by source') .data").first().innerText(), /pallas_kernels\.py:23/);
      // Another version: the kernel of that name in another run, another kernel of this one.
      await page.getByLabel("Other run").fill("kernels_v5e");
      await page.getByLabel("Other run").press("Enter");
      await page.waitForSelector("section[aria-label='Two versions'] .verdict >> text=This one takes 84.71 µs, the other 245.1 µs: −65.4 %.");
      assert.equal(at("versus_run"), "kernels_v5e");
      await page.locator("section[aria-label='Two versions'] select").selectOption("fused_attention.1");
      await page.waitForSelector("section[aria-label='Two versions'] .verdict >> text=This one takes 84.71 µs, the other 1.443 ms");
      assert.equal(at("versus"), "fused_attention.1");
      // axe finds nothing in its own parts.
      await page.emulateMedia({ colorScheme: "dark" });
      await page.screenshot({ path: join(shots, "kernel.png") });
      if (existsSync(axe)) {
        await page.evaluate(readFileSync(axe, "utf8"));
        const { violations } = await page.evaluate(() => window.axe.run("section.panel", { resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] }));
        assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes[0].target} ${v.nodes[0].any[0]?.message}`), []);
      }
      // Part of the run, by keys: every page is then about it.
      await page.locator("[aria-label^='Units over time'] .heat-plot").focus();
      for (const key of ["ArrowRight", "Shift+ArrowRight", "Shift+ArrowRight", "Enter"]) await page.keyboard.press(key);
      await waitFor("the range is in the address", () => /^\d+\.\.\d+$/.test(at("range") ?? ""));
      const [t0, t1] = at("range").split("..").map(BigInt);
      assert.ok(t1 > t0 && t1 - t0 < 20_000n, at("range"));
      await page.waitForSelector(`.tool-page[aria-busy=false] [data-metric=kernel_run_time] >> text=${Number(t1 - t0) / 1000}`);
      await page.goBack();
      // A run without a record says so; the timeline is at it.
      await page.locator(".head-row select").nth(1).selectOption("3");
      await page.waitForSelector("text=The profile does not say what this run did inside.");
      assert.equal(at("occurrence"), "3");
      await page.click("text=This run in the timeline");
      await page.waitForSelector(".drawing canvas");
      assert.equal(at("op"), "tiled_matmul.4");
      const [from, to] = at("t").split("..").map(BigInt);
      assert.ok(to - from > 83_000_000n && to - from < 100_000_000n, at("t"));
      // From the other side: an op of another page.
      await page.goto(`${base}hlo_stats?run=kernels_v6e&op=tiled_matmul.7`);
      await ready(page);
      await page.click(".op-links a:has-text('Custom kernels')");
      await page.waitForSelector(".verdict >> text=tiled_matmul.7");
      assert.deepEqual(await check(), []);
    } finally {
      await close();
      for (const [run] of added) rmSync(join(logdir.path, "plugins/profile", run), { recursive: true });
    }
  });

  test("what percentiles are of is asked of the server", { skip: !realProfile("synth_inference", "serving-0") && "the sample is not there" }, async () => {
    const { page, check, close } = await openPage(browser, server.url);
    await page.goto(`${base}inference_profile?run=synth_inference`);
    await ready(page);
    await Promise.all([
      page.waitForRequest((r) => /\/report\?/.test(r.url()) && new URL(r.url()).searchParams.get("by") === "decode"),
      page.getByLabel("Percentiles of").selectOption("decode"),
    ]);
    await ready(page);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("an area of the roofline lists its ops, a kernel tells how long it takes, ops are summed up by layer", { skip: !(realProfile("synth_gpu_train", "gpu-0") && realProfile("synth_tpu_train", "tpu-worker-0")) && "the samples are not there" }, async () => {
    const { page, check, close } = await openPage(browser, server.url);
    await page.goto(`${base}kernel_stats?run=synth_gpu_train`);
    await ready(page);
    await page.locator(".data td", { hasText: "volta_h884gemm_64x128" }).first().click();
    await page.waitForSelector("text=How long this kernel takes");
    assert.equal(new URL(page.url()).searchParams.get("kernel"), "volta_h884gemm_64x128");
    await page.goto(`${base}hlo_stats?run=synth_tpu_train`);
    await ready(page);
    await page.click(".head-row button:text-is('Layer')");
    await page.waitForSelector(".data td:text-is('layer_1')");
    await page.goto(`${base}roofline_model?run=synth_tpu_train`);
    await ready(page);
    const box = await page.locator(".scatter .plot").boundingBox();
    await page.mouse.move(box.x + box.width * 0.55, box.y + 20);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.7, box.y + box.height - 60, { steps: 3 });
    await page.mouse.up();
    await page.waitForSelector("text=2 ops as the table below is filtered");
    assert.match(new URL(page.url()).searchParams.get("q.ops"), /^intensity>=[\d.]+ intensity<=[\d.]+ flop_rate>=\S+ flop_rate<=\S+$/);
    assert.equal(await page.locator(".bubble.dim").count(), 4);
    await page.click(".panel-head button:text-is('All ops')");
    await page.waitForSelector(".bubble.dim", { state: "detached" });
    await page.click(".panel-head button:text-is('Lasso')");
    await page.mouse.move(box.x + box.width * 0.55, box.y + 20);
    await page.mouse.down();
    for (const [right, down] of [[0.75, 20], [0.75, box.height - 80], [0.6, box.height - 60], [0.55, box.height - 120]]) await page.mouse.move(box.x + box.width * right, box.y + down, { steps: 2 });
    await page.mouse.up();
    await page.waitForSelector("text=2 ops as the table below is filtered");
    assert.match(new URL(page.url()).searchParams.get("lasso"), /^([\d.e+-]+_[\d.e+-]+,){2,31}[\d.e+-]+_[\d.e+-]+$/);
    await page.waitForSelector("text=The 2 ops in the lasso");
    await page.reload();
    await ready(page);
    assert.equal(await page.locator(".bubble.dim").count(), 4, "the address has it");
    await page.click("text=Area…");
    await page.getByLabel("FLOP rate from").fill("1T");
    await page.keyboard.press("Enter");
    await waitFor("the sides take the lasso's place", () => /[?&]q\.ops=intensity/.test(page.url()) && !page.url().includes("lasso"));
    assert.deepEqual(await page.locator(".roofline-key .legend-item").allInnerTexts(), ["the whole program", "the average of steps", "a step"]);
    await page.goto(`${base}op_profile?run=synth_tpu_train&view=icicle&colour=waste&op=fusion.7`);
    await ready(page);
    await page.waitForSelector(".row-card:has-text('Of the steps')");
    assert.match(await page.locator(".waste-scale").innerText(), /unused/);
    await page.goto(`${base}op_profile?run=synth_tpu_train`);
    await ready(page);
    await page.click(".head-row button:text-is('With idle')");
    await page.waitForSelector("[role=treegrid] :text-is('IDLE')");
    await page.click(".head-row button:text-is('Top 90 %')");
    await page.waitForSelector("text=children that make up 90 % of it");
    assert.equal(new URL(page.url()).searchParams.get("idle") + new URL(page.url()).searchParams.get("most"), "190");
    await page.click(".head-row button:text-is('All nodes')");
    await page.waitForSelector("text=children that make up 90 % of it", { state: "detached" });
    assert.equal(new URL(page.url()).searchParams.has("most"), false);
    await page.click(".table-tools button:text-is('By caller')");
    await page.waitForSelector("h2:text-is('Ops by caller')");
    await page.getByLabel("Filter Ops by caller").fill("name:layer_1 self>1us");
    await page.waitForSelector("[role=treegrid] :text-is('layer_1')");
    assert.match(await page.locator(".table-block", { hasText: "Ops by caller" }).locator(".table-count").innerText(), /; 1 match, /);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("pages are held against another run, which goes from page to page", { skip: !(realProfile("synth_tpu_train", "tpu-worker-0") && realProfile("tpu_v6e_inference", "host0")) && "the samples are not there" }, async () => {
    const { page, check, close } = await openPage(browser, server.url);
    const held = () => new URL(page.url()).searchParams.get("base");
    await page.goto(`${base}op_profile?run=synth_tpu_train&view=tree`);
    await ready(page);
    await page.click(".crumbs button[title^='Hold the pages']");
    await page.getByLabel("Show by how much").fill("v6e_inf");
    await page.click("[aria-label=Runs] button:text-is('tpu_v6e_inference')");
    await page.waitForSelector("[role=treegrid] th:has-text('Of the change')");
    assert.equal(held(), "tpu_v6e_inference");
    assert.equal(await page.locator(".base-chip a").getAttribute("href"), "/p/local/compare?a=tpu_v6e_inference&b=synth_tpu_train");
    await page.click(".rail a[href*='/hlo_stats?']");
    await page.waitForSelector("section[aria-label='HLO ops'] th:has-text('Match')");
    assert.equal(held(), "tpu_v6e_inference");
    await page.waitForSelector(".delta-cell");
    await page.waitForSelector(".tile[data-metric=flop_rate] .delta");
    await page.click(".rail a[href*='/trace?']");
    await page.waitForSelector(".drawing canvas");
    await page.click(".rail a[href*='/overview_page?']");
    await page.waitForSelector(".tile[data-metric=step_time_mean] .delta");
    assert.equal(held(), "tpu_v6e_inference", "by way of the timeline");
    await page.click(".base-chip button");
    await page.waitForSelector(".tile .delta", { state: "detached" });
    assert.equal(held(), null);
    await page.goto(`${base}hlo_stats?run=synth_tpu_train&base=no-such-run`);
    await page.waitForSelector(".base-chip.ignored:has-text('no-such-run')");
    assert.deepEqual((await check()).filter((x) => !x.includes("404")), []);
    await close();
  });

  test("a click on a curve of memory shows what is alive then, and the address says so", { skip: !realProfile("synth_gpu_train", "gpu-0") && "the sample is not there" }, async () => {
    const { page, close } = await openPage(browser, server.url);
    const at = () => new URL(page.url()).searchParams.get("at");
    await page.goto(`${base}memory_profile?run=synth_gpu_train`);
    await ready(page);
    await page.waitForSelector("text=Alive at the peak");
    await page.locator(".plot").first().click({ position: { x: 250, y: 60 } });
    await page.waitForSelector("h2:text-is('Alive then')");
    assert.match(at(), /^\d{10,12}$/);
    assert.equal(await page.locator(".picked-line").count() > 0, true);
    assert.match(await page.locator(".moment a").getAttribute("href"), /trace\?.*t=\d+\.\./);
    await page.click("text=Back to the peaks");
    await page.waitForSelector("h2:text-is('Alive at the peak')");
    assert.equal(at(), null);
    await close();
  });

  test("two programs of a run are compared by their buffers, and all of them by their peaks", { skip: !realProfile("tpu_v6e_inference", "host0") && "the sample is not there" }, async () => {
    const { page, check, close } = await openPage(browser, server.url);
    await page.goto(`${base}memory_viewer?run=tpu_v6e_inference&w=2-9`);
    await ready(page);
    const other = page.getByLabel("Compared with");
    await other.selectOption(await other.locator("option", { hasText: "psum" }).first().getAttribute("value"));
    await page.waitForSelector("h2:text-is('Buffers of two programs')");
    await page.click("text=Peaks of all programs");
    await page.waitForSelector("h2:text-is('Peaks of all programs')");
    const at = new URL(page.url()).searchParams;
    assert.deepEqual([at.get("programs"), at.get("w"), at.get("than").length > 0], ["all", "2-9", true]);
    await page.click("text=Whole program");
    await page.waitForSelector("text=Whole program", { state: "detached" });
    await page.locator(".lifetimes .life", { hasText: "copy-start" }).first().click();
    await waitFor("a click chooses the buffer's op", () => /[?&]op=./.test(page.url()));
    assert.equal(new URL(page.url()).searchParams.has("w"), false);
    assert.equal(await page.locator(".lifetimes .life-curve, .lifetimes .life-line").count(), 2);
    await page.waitForSelector(".lifetimes .life.past");
    const memories = await page.locator("label.choice", { hasText: /^Memory/ }).locator("option").allInnerTexts();
    assert.deepEqual(memories.map((x) => x.split(",")[0]), ["HBM", "VMEM", "sync flags", "host"]);
    await page.click("button:text-is('Offset')");
    await page.waitForSelector(".lifetimes text:has-text('Offset, allocations')");
    assert.equal(new URL(page.url()).searchParams.get("axis"), "offset");
    for (const kind of ["SVG", "PNG"]) {
      const [file] = await Promise.all([page.waitForEvent("download"), page.click(`section[aria-label=Lifetimes] button:has-text("${kind}")`)]);
      assert.equal(file.suggestedFilename(), `lifetimes.${kind.toLowerCase()}`);
    }
    const peaks = page.locator("section[aria-label='Peaks of all programs'] .plot");
    await peaks.focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    await waitFor("the second bar's program is open", () => /program_id=\d+/.test(page.url()));
    await ready(page);
    assert.deepEqual(await check(), []);
    await page.goto(`${base}memory_viewer?run=tpu_v6e_inference&w=900000-900009`);
    await ready(page);
    await page.waitForSelector(".lifetimes .life");
    assert.equal(await page.locator("text=/^(No points|Whole program)/").count(), 0);
    await page.locator("label.choice", { hasText: /^Memory/ }).locator("select").selectOption("1");
    await page.waitForSelector("text=The program has no buffers in this memory");
    assert.equal(new URL(page.url()).searchParams.has("w"), false);
    await page.goto(`${base}memory_profile?run=tpu_v6e_inference`);
    await ready(page);
    await page.locator("label.choice", { hasText: /^Allocator/ }).locator("select").selectOption("2");
    await page.waitForSelector("section[aria-label='Fragmentation of 2, host0']");
    assert.equal(new URL(page.url()).searchParams.get("allocator"), "2");
    await waitFor("the others are gone", async () => (await page.locator("section[aria-label^='Allocator ']").count()) === 1);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("what is inside of a fusion is drawn in place, and what is another in another program has its sign", { skip: !realProfile("tpu_v6e_inference", "host0") }, async () => {
    const { page, check, close } = await openPage(browser, server.url);
    const nodes = () => page.locator(".graph-node").count();
    await page.goto(`${base}graph_viewer?run=tpu_v6e_inference&node_name=broadcast_add_fusion&radius=1`);
    await page.waitForSelector(".graph-node");
    const before = await nodes();
    assert.match(await page.locator(".graph-change").first().textContent(), /S\(\d\) → S\(\d\)/);
    await page.locator(".graph-node", { hasText: "broadcast_add_fusion" }).locator(".graph-open", { hasText: "Look inside" }).first().click();
    await page.waitForSelector(".graph-node.cluster");
    assert.match(page.url(), /[?&]inside=broadcast_add_fusion/);
    assert.ok((await nodes()) > before);
    // The chosen op inside is shown where it is; the graph stays.
    await page.locator(".graph-node:not(.cluster)", { hasText: /inside|in fused_computation/ }).first().click();
    await waitFor("it is chosen", () => /[?&]op=/.test(page.url()) && /node_name=broadcast_add_fusion/.test(page.url()));
    await page.waitForSelector(".graph-node.cluster");
    await page.locator(".graph-box").focus();
    await page.keyboard.press("o"); // the op around it is closed
    await waitFor("it is closed", async () => (await page.locator(".graph-node.cluster").count()) === 0);
    await page.locator(".choice", { hasText: "Merge fusions" }).locator("input").uncheck();
    await page.waitForSelector(".graph-node.cluster");
    assert.match(page.url(), /merge_fusion=false/);
    await page.locator(".choice", { hasText: "Compared with" }).locator("select").selectOption({ index: 1 });
    await page.waitForSelector(".mark-added");
    await page.waitForSelector("section[aria-label='Ops that are not the same']");
    assert.match(page.url(), /[?&]than=\d+/);
    assert.match(await page.locator(".graph-name.added").first().textContent(), /^\+ /);
    await page.locator(".graph-downloads button", { hasText: "Program" }).click();
    assert.deepEqual(await page.locator(".graph-files a").allInnerTexts(), ["Short text", "Long text", "Long text with metadata", "pb", "pbtxt"]);
    const file = await page.request.get(await page.locator(".graph-files a").first().evaluate((a) => a.href));
    assert.match(await file.text(), /^HloModule jit_f/);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("an op of a graph is found by letters of it, grows where it is clicked, and its text leads on", { skip: !realProfile("tpu_v6e_inference", "host0") }, async () => {
    const { page, check, close } = await openPage(browser, server.url);
    const names = () => page.locator(".graph-name").allInnerTexts();
    await page.goto(`${base}graph_viewer?run=tpu_v6e_inference&radius=1`);
    await page.waitForSelector(".graph-node");
    await page.locator(".op-finder input").fill("brdaddf");
    await page.waitForSelector(".op-finder ul[aria-label='Ops that match'] li:has-text('broadcast_add_fusion.1')");
    await page.keyboard.press("ArrowDown");
    await page.locator(".op-finder input").fill("copy-done");
    await page.keyboard.press("Enter");
    await waitFor("what was typed last counts, not what was found before", () => /node_name=copy-done/.test(page.url()));
    await page.waitForSelector(".graph-crumbs b:text-matches('^copy-done')");
    await page.locator(".op-finder input").fill("brdaddf");
    await page.waitForSelector(".op-finder ul[aria-label='Ops that match'] li:has-text('broadcast_add_fusion.1')");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await waitFor("an op that matches is shown", () => /node_name=broadcast_add_fusion/.test(page.url()));
    await page.waitForSelector(".graph-crumbs b:text-matches('^broadcast_add_fusion')");
    const before = (await names()).length;
    await page.locator(".graph-open", { hasText: "more" }).first().click();
    await waitFor("it has grown", async () => (await names()).length > before);
    await page.locator(".graph-open", { hasText: "less" }).first().click();
    await waitFor("it is as it was", async () => (await names()).length === before);
    const told = () => page.locator(".graph [aria-live]").innerText();
    await page.mouse.move(0, 0);
    await page.locator(".graph-box").focus();
    await page.keyboard.press("ArrowUp");
    const operand = await waitFor("an operand is told", told);
    const less = page.locator(".graph-open", { hasText: "less" });
    await page.keyboard.press("Space");
    await less.waitFor();
    await page.keyboard.press("Space");
    await less.waitFor({ state: "detached" });
    assert.equal(await told(), operand);
    await page.locator(".text-lines a", { hasText: "%copy-done" }).first().click();
    await waitFor("the name led to its op", () => /[?&]op=copy-done/.test(page.url()));
    await page.waitForSelector(".graph-crumbs b:text-matches('^copy-done')");
    assert.deepEqual(await check(), []);
    await close();
  });

  test("the palette finds tools and runs, the help tells the keys", async () => {
    const { page, check, close } = await openWith(fixed());
    await page.goto(`${base}overview_page?run=${PLAIN}`);
    await ready(page);
    await page.keyboard.press("Control+k");
    await page.waitForSelector("dialog.palette");
    await page.keyboard.type("roof");
    await page.keyboard.press("Enter");
    await waitFor("the roofline is there", () => page.url().includes("/roofline_model?run=plain"));
    await page.keyboard.press("?");
    assert.match(await page.locator("dialog.help").innerText(), /self>10us/);
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    assert.deepEqual(await check(), []);
    await close();
  });

  test("two runs are compared from the list, and the op that got slower is the first row", async () => {
    const slower = (q) => (q.get("run") === PLAIN ? 1 : 0);
    const marked = new Set();
    const { page, check, close } = await openWith((q) => {
      const r = everything({ tool: q.get("tool") });
      if (q.get("step_marker") === "jit_train") marked.add(`${q.get("tool")} ${q.get("run")}`);
      if (slower(q)) r.metrics.find((m) => m.id === "step_time_mean").value = 15e9;
      if (q.get("tool") === "memory_viewer") return { ...r, tables: [bufferTable(9, (i) => (slower(q) && i === 7 ? 2 : 1), (i) => `fusion.${i + 100 * slower(q)}{0}`)] };
      return { ...r, missing_hosts: [], tables: [opTable(30, (i) => (slower(q) && i === 7 ? 2 : 1), (i) => `fusion.${i + 100 * slower(q)}`)] };
    });
    const other = runs[0] ?? PLAIN;
    await page.goto(base);
    await page.waitForSelector(".runs tbody tr");
    await page.check(`[aria-label="Compare ${PLAIN}"]`);
    await page.check(`[aria-label="Compare ${other}"]`);
    await page.click(".compare-bar a");
    await page.waitForSelector(".waterfall");
    assert.match(new URL(page.url()).pathname, /\/compare$/);
    await page.goto(`${base}compare?a=${other}&b=${PLAIN}&step_marker=jit_train`);
    await page.waitForSelector(".waterfall");
    for (const tool of ["overview_page", "hlo_stats", "smart_suggestion"])
      for (const run of [other, PLAIN]) await waitFor(`${tool} of ${run} by the chosen steps`, () => marked.has(`${tool} ${run}`));
    assert.match(await page.locator(".verdict").innerText(), /B is slower: a step takes 15\.00 ms instead of 12\.35 ms \(\+21\.5 %\)/);
    assert.match(await page.locator(".data tbody tr").first().innerText(), /fusion\.107[\s\S]*same/);
    assert.match(await page.locator('[data-metric="step_time_mean"] .delta').innerText(), /\+2\.654 ms \(\+21\.5 %\)[\s\S]*worse/);
    await page.click("text=By op");
    await page.waitForSelector(".waterfall .fall-name:text-matches('other ops?$')");
    await page.click("text=Compare the buffers");
    await page.waitForSelector("section[aria-label^='Buffers'] tbody tr");
    assert.match(await page.locator("section[aria-label^='Buffers'] tbody tr").first().innerText(), /fusion\.107[\s\S]*same[\s\S]*\+2\.00 GiB/);
    assert.equal(new URL(page.url()).searchParams.get("buffers"), "1");
    for (const theme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme: theme });
      await page.screenshot({ path: join(shots, `compare-${theme}.png`) });
    }
    assert.deepEqual(await check(), []);
    await close();
  });

  test("text is as large as the browser's default font size asks for, and its rows with it", async () => {
    const { page, check, close } = await openWith(fixed({}));
    const devtools = await page.context().newCDPSession(page);
    await devtools.send("Page.setFontSizes", { fontSizes: { standard: 32 } });
    const cut = (what) => page.evaluate((css) => [...document.querySelectorAll(css)].filter((e) => e.scrollHeight > e.clientHeight + 2).map((e) => e.textContent), what);
    await page.goto(`${base}hlo_stats?run=${PLAIN}`);
    await ready(page);
    assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector(".data tbody td")).fontSize), "26px");
    assert.equal(await page.evaluate(() => document.querySelector(".data tbody tr:not(.spacer)").offsetHeight), 58);
    assert.deepEqual(await cut(".data td, .data th, .tile h3, .tile b, .bar button, .bar select"), []);
    await page.goto(`${base}trace?run=${PLAIN}&host=w-0`);
    await page.waitForSelector(".line .who");
    assert.deepEqual(await cut(".plane .name, .line .count, .corner, .bar select"), []);
    const rows = await page.evaluate(() => [...document.querySelectorAll(".label:has(.who)")].map((e) => [e.offsetHeight, e.querySelector(".name").offsetHeight]));
    assert.ok(rows.length > 0 && rows.every(([row, name]) => name > 24 && row >= name - 6), `${rows}`);
    const sizes = () => page.evaluate(() => [".corner", ".label:has(.plane)", ".tools .icon"].map((css) => document.querySelector(css).getBoundingClientRect().height));
    assert.deepEqual(await sizes(), [56, 52, 32]);
    await devtools.send("Page.setFontSizes", { fontSizes: { standard: 16 } });
    await waitFor("a change is followed while the page is open, by text, rows and icons", async () => `${await sizes()}` === "28,26,16");
    assert.deepEqual(await check(), []);
    await close();
  });

  test("names with markup stay text in every part of every page", async () => {
    const name = (i) => `${MARKUP}${i}`;
    const { page, check, close } = await openWith(fixed({ name }));
    for (const place of ["overview_page?", "roofline_model?", "graph_viewer?", "op_profile?view=icicle&"]) {
      await page.goto(`${base}${place}run=${PLAIN}&op=${encodeURIComponent(name(0))}`);
      await ready(page);
      await page.locator(".chart .plot").first().hover({ position: { x: 200, y: 60 } });
      assert.ok((await page.locator("body").innerText()).includes(MARKUP), `${place}: the name is on the page`);
      if (!place.startsWith("graph")) continue;
      for (const kind of ["DOT", "SVG", "HTML"]) { // downloads, too
        const [download] = await Promise.all([page.waitForEvent("download"), page.click(`.panel-head button:has-text('${kind}')`)]);
        const text = readFileSync(await download.path(), "utf8");
        assert.ok(text.includes(kind === "DOT" ? "digraph" : "&lt;img src=x"), kind);
        const tags = kind === "SVG" && await page.evaluate((t) => {
          const made = new Blob([t], { type: "image/svg+xml" });
          const picture = new Image();
          const drawn = new Promise((done) => ((picture.onload = () => done(true)), (picture.onerror = () => done(false))));
          picture.src = URL.createObjectURL(made);
          return drawn;
        }, text);
        if (kind === "HTML") {
          assert.ok(/default-src 'none'/.test(text) && !/<(script|img|foreignObject|style)|javascript:|\son\w+=(?!alert)/i.test(text.replaceAll(/&lt;[^<]*/g, "")), "the page is text and a picture");
          const made = await page.context().newPage();
          await made.setContent(text);
          assert.deepEqual(await made.evaluate(() => [document.images.length, document.scripts.length, document.querySelectorAll("svg").length > 0, document.body.innerText.includes("img src=x")]), [0, 0, true, true]);
          await made.close();
        }
        if (kind === "SVG") assert.ok(tags && !/<(script|img|foreignObject)/i.test(text), "the picture is one, and holds no markup of a name's");
      }
    }
    await page.goto(`${base}compare?a=${PLAIN}&b=${PLAIN}`);
    await page.waitForSelector(".waterfall");
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    assert.equal(await page.locator("img").count(), 0);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("the main job is done by keys alone: two runs compared, the op that changed looked at in the timeline", async () => {
    const { page, check, close } = await openWith((q) => {
      const slower = q.get("run") === PLAIN;
      const names = ["fusion.1", "copy.2", "all-reduce.3"];
      return { ...everything({ tool: q.get("tool"), hosts: ["w-0"] }), missing_hosts: [], tables: [opTable(3, (i) => (slower && i === 1 ? 3 : 1), (i) => names[i])] };
    });
    const focused = (fn) => page.evaluate(fn);
    const tabTo = async (what, is, most = 200) => {
      for (let i = 0; i < most; i++) {
        await page.keyboard.press("Tab");
        if (await focused(is)) return;
      }
      throw new Error(`Tab does not lead to ${what}`);
    };
    await page.goto(base);
    await page.waitForSelector(".runs tbody tr");
    await tabTo("a run's box", () => document.activeElement?.matches(".runs input[type=checkbox]"));
    await page.keyboard.press("Space");
    await tabTo("another", () => document.activeElement?.matches(".runs input[type=checkbox]"));
    await page.keyboard.press("Space");
    await tabTo("Compare", () => document.activeElement?.matches(".compare-bar a"));
    await page.keyboard.press("Enter");
    await page.waitForSelector(".waterfall");
    await page.goto(`${base}compare?a=${runs[0] ?? PLAIN}&b=${PLAIN}`);
    await page.waitForSelector(".waterfall");
    await tabTo("the table of ops", () => document.activeElement?.matches("section[aria-label^='Ops'] .table-scroll"));
    for (const key of ["ArrowDown", "Enter"]) await page.keyboard.press(key);
    await page.waitForSelector(".row-card");
    await tabTo("the op in B", () => document.activeElement?.textContent.trim() === "In B");
    await page.keyboard.press("Enter");
    await ready(page);
    await waitFor("its op is chosen", () => new URL(page.url()).searchParams.get("op") === (runs[0] ? "copy.2" : "fusion.1"));
    await tabTo("its timeline", () => document.activeElement?.matches(".op-links a") && document.activeElement.textContent.includes("Timeline"));
    await page.keyboard.press("Enter");
    await page.waitForSelector(".drawing canvas");
    assert.deepEqual(await check(), []);
    await close();
  });

  test("a file of one's own is dropped or chosen, is sent with numbers, can be cancelled, opens, and is gone when it is removed", async () => {
    const { page, check, close } = await openPage(browser, server.url);
    const drop = async (name, bytes) => {
      const data = await page.evaluateHandle(([n, b]) => {
        const d = new DataTransfer();
        d.items.add(new File([Uint8Array.from(b)], n));
        return d;
      }, [name, [...bytes]]);
      await page.dispatchEvent("body", "dragenter", { dataTransfer: data });
      await page.waitForSelector(".drop-here");
      await page.dispatchEvent("body", "drop", { dataTransfer: data });
      await page.waitForSelector(".drop-here", { state: "detached" });
    };
    await page.goto(base);
    await page.waitForSelector(".runs tbody tr");

    // What is no profile is told where it was dropped.
    await drop(`${MARKUP}.json`, Buffer.from("{}"));
    await page.waitForSelector(".uploads .problem");
    assert.match(await page.locator(".uploads").innerText(), /<img src=x[\s\S]*JSON/);
    await page.keyboard.press("Tab");
    await page.click(".uploads [aria-label^='Close the message']");

    // Pieces that do not come on: numbers, and an end to it.
    const held = [];
    await page.route(/upload_piece/, (route) => void held.push(route));
    const profile = plainProfile(500);
    const choose = (name) => page.setInputFiles("#file-to-open", { name, mimeType: "application/octet-stream", buffer: profile });
    await page.evaluate(() => document.querySelector("#file-to-open").addEventListener("click", (e) => (e.preventDefault(), (window.asked = true)), { once: true }));
    await page.focus(".open-file");
    await page.keyboard.press("Enter");
    assert.ok(await page.evaluate(() => window.asked), "the button is pressed by keys, too");
    await choose("slow.xplane.pb");
    await waitFor("a piece is on its way", () => held.length === 1);
    assert.match(await page.locator(".uploads").innerText(), /slow\.xplane\.pb[\s\S]*0 B of [\d.]+ KiB/);
    await page.click(".uploads button:has-text('Cancel')");
    await page.waitForSelector(".uploads", { state: "detached" });
    await page.unroute(/upload_piece/);
    await Promise.all(held.map((route) => route.abort().catch(() => undefined)));

    await choose(`mine ${MARKUP}.xplane.pb`);
    await waitFor("it opens", () => /overview_page\?run=upload-[0-9a-f]{32}$/.test(page.url()));
    await ready(page);
    const run = new URL(page.url()).searchParams.get("run");
    await page.click(".bar button:has-text('Temporary, until')");
    assert.match(await page.locator(".upload-about").innerText(), /mine <img[\s\S]*No list shows it/);
    await page.click(".rail-item:has-text('Runs')");
    await page.waitForSelector(".kept-uploads");
    assert.equal(await page.locator(`.runs a[href*="${run}"]`).count(), 0, "no list of the server's has it");
    await page.click(".kept-uploads a:has-text('mine')");
    await ready(page);
    await page.click(".bar button:has-text('Temporary, until')");
    await page.click("button:has-text('Remove it now')");
    await page.waitForSelector(".runs tbody tr");
    assert.equal(await page.locator(".kept-uploads").count(), 0);
    assert.equal((await fetch(`${base}api/v1/run?run=${run}`)).status, 404);
    assert.deepEqual(await check(/status of 422/), []);
    await close();
  });

  test("a pinned run stands in the menu until it is not pinned any more", async () => {
    const { page, check, close } = await openPage(browser, server.url);
    await page.goto(base);
    await page.click(`.runs [aria-label="Pin ${PLAIN}"]`);
    await page.reload();
    await page.click(`.rail [aria-label="Pinned runs"] a:has-text('${PLAIN}')`);
    await waitFor("it is open", () => page.url().includes(`overview_page?run=${PLAIN}`));
    await page.goto(base);
    await page.click(`.runs [aria-label="Pin ${PLAIN}"][aria-pressed=true]`);
    assert.equal(await page.locator(".rail [aria-label='Pinned runs']").count(), 0);
    assert.deepEqual(await check(/status of 4\d\d/), []);
    await close();
  });

  test("captures and admin say what there is, and every link of theirs leads somewhere", async () => {
    const { page, check, close } = await openPage(browser, server.url);
    for (const [name, words] of [["Captures", /does not take profiles itself[\s\S]*jax\.profiler\.start_trace/], ["Admin", /Memory of the process[\s\S]*no identity is asked for/]]) {
      await page.goto(base);
      await page.click(`.rail-item:has-text('${name}')`);
      await waitFor(name, async () => words.test(await page.locator("main").innerText()));
      for (const href of await page.locator("main a[href]").evaluateAll((all) => all.map((a) => a.href))) assert.equal((await fetch(href)).status, 200, href);
    }
    assert.deepEqual(await check(/status of 404/), []); // share links are off here
    await close();
  });

  test("suggestions are a report: status, what shows each finding, what changed since the run before, and all of it as Markdown", async () => {
    let broken = false;
    const { page, check, close } = await openWith((q) => {
      if (q.get("tool") !== "smart_suggestion") return null;
      return q.get("run") === PLAIN ? suggestions({ idle: ["P0", 0.4], copies: ["P1", 0.2] }, MARKUP) : suggestions({ idle: ["P1", 0.25], input_bound: ["P1", 0.1] });
    });
    await page.route(/api\/v1\/runs\?/, (route) => route.fulfill({ json: {
      location: "logs", total: 2, total_exact: true, next: null, cut: null, empty: null,
      runs: [PLAIN, "before"].map((run, i) => ({ run, captured_ms: 2000 - i, captured_from: "name", hosts: 2, bytes: 10, state: "ready", note: "" })),
    } }));
    const host = { bytes: 5, compressed: false, modified_ms: 1, state: "ready", note: "" };
    await page.route(/v1\/run\?.*run=before/, (route) => route.fulfill({ json: { run: "before", captured_ms: 1999, location: "logs", note: "", hosts: ["w-0", "w-1"].map((h) => ({ host: h, ...host })) } }));
    await page.route(/report\?.*run=before/, (route) => (broken ? route.fulfill({ status: 500, contentType: "application/problem+json", body: '{"title":"Internal","detail":"on fire"}' }) : route.fallback()));
    await page.goto(`${base}smart_suggestion?run=${PLAIN}`);
    await page.waitForSelector(".since-part >> text=Findings:");
    assert.equal(await page.locator(".report-status").getAttribute("data-status"), "NEEDS_ATTENTION");
    assert.match(await page.locator(".report-status").innerText(), /NEEDS ATTENTION\s+It needs attention/);
    assert.match(await page.locator(".since-part").innerText(), /1 new, 1 gone, 1 changed\. A step takes[\s\S]*Against before[\s\S]*gone about input_bound was 10\.0 %/);
    const cards = page.locator(".finding");
    assert.match(await cards.first().innerText(), /P0\s+about idle\s+was 25\.0 %\s+40\.0 %[\s\S]*Evidence[\s\S]*Expected impact\s+At most 4\.000 ms of each step\.[\s\S]*What helps/);
    assert.match(await cards.nth(1).innerText(), /P1\s+about copies\s+new/);
    const evidence = cards.first().locator("dd li");
    assert.ok((await evidence.first().innerText()).includes(MARKUP), "a name is text");
    assert.match(await evidence.first().locator("a").first().getAttribute("href"), /hlo_stats\?run=plain&op=/);
    assert.match(await evidence.nth(1).locator("a").getAttribute("href"), /trace\?run=plain&host=w-0&t=/);
    await page.evaluate(() => (navigator.clipboard.writeText = (text) => ((window.copied = text), Promise.resolve())));
    await page.click(".bar button[title^='Copy the whole report']");
    const text = await waitFor("it is copied", () => page.evaluate(() => window.copied));
    assert.match(text, /^## Suggestions for plain\n\n\*\*NEEDS ATTENTION\*\*[\s\S]*### Since before[\s\S]*### P0: about idle[\s\S]*\]\(http:\/\/127[\s\S]*Fix: /);
    assert.ok(!text.includes(MARKUP), "and no markup there either");
    // What is known stands last, and the status says so.
    await cards.first().getByRole("button", { name: "Mark as known" }).click();
    await waitFor("it stands last", async () => (await cards.nth(1).innerText()).includes("about idle"));
    assert.match(await page.locator(".report-status").innerText(), /1 of what is weighty are marked as known/);
    await cards.nth(1).getByRole("button", { name: "Known: forget that" }).click();
    // The report before has none before it; back again.
    await page.click(".since-part a:text-is('before')");
    await page.waitForSelector(".since-part >> text=There is no earlier run");
    await page.waitForSelector(".finding >> text=about input_bound");
    await page.goBack();
    await page.waitForSelector(".since-part >> text=1 new, 1 gone");
    // Another run, in the address; that it fails takes nothing from the page.
    broken = true;
    await page.selectOption(".since-part select", "before");
    await page.waitForSelector(".since-part >> text=Its report cannot be read: on fire");
    assert.equal(new URL(page.url()).searchParams.get("base"), "before");
    assert.equal(await cards.count(), 2);
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    assert.deepEqual(await check(/status of (404|500)/), []); // there is no such run
    await close();
  });

  test("a capture is asked for, watched, ended, tried again; what records continuously is seen on every page", { skip: !existsSync(axe) && "axe-core is not installed" }, async () => {
    const fake = new FakeCaptures({ names: ["w-1", "w-9", MARKUP] });
    const url = await fake.start(server.url);
    const { page, check, close } = await openPage(browser, url, { bypassCSP: true, reducedMotion: "reduce" });
    const at = (name) => new URL(page.url()).searchParams.get(name);
    const clean = async (what) => {
      await page.evaluate(readFileSync(axe, "utf8"));
      const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
      assert.deepEqual(violations.map((v) => `${what}: ${v.id}: ${v.nodes[0].target} ${v.nodes[0].any[0]?.message}`), []);
    };
    const card = page.locator(".job-card");
    // From a run: its hosts are chosen.
    await page.goto(`${url}/p/local/run?run=${PLAIN}`);
    await page.click(".bar a:has-text('Capture')");
    await page.waitForSelector(".capture-form");
    assert.equal(at("run"), PLAIN);
    const boxes = page.locator(".target-list input");
    assert.deepEqual(await boxes.evaluateAll((all) => all.map((b) => b.checked)), [true, false, false]);
    assert.equal(await page.locator("[type=submit]").innerText(), "Capture w-1 for 2 s");
    assert.match(await page.locator(".estimate").innerText(), /About 95\.4 MiB, as the last captures were; 2\.00 GiB a profile is the limit/);
    // What is wrong is said where it is, and nothing is sent.
    await page.getByLabel("Duration, seconds").fill("0");
    await page.getByRole("button", { name: "Add an option" }).click();
    await page.keyboard.type("tpu trace=1");
    await page.keyboard.press("Enter");
    assert.match(await page.locator(".capture-form").innerText(), /From 0\.1 s to 10 min[\s\S]*letters, digits and _ only/);
    await waitFor("the first of them has the focus", () => page.evaluate(() => document.activeElement?.closest(".form-field")?.textContent.startsWith("Duration")));
    assert.equal(fake.asked.length, 0);
    await page.getByLabel("Name of option 1").fill("tpu_trace_mode");
    await page.getByLabel("Duration, seconds").fill("60");
    await page.locator(".form-row").getByLabel("Python").selectOption("1");
    await page.getByRole("button", { name: "All", exact: true }).click();
    assert.match(await page.locator(".estimate").innerText(), /the window will be shortened to fit\. 32\.2 s would fit/);
    // The server's no stands at the button.
    fake.refuse = { status: 409, title: "Conflict", code: "busy", detail: "w-1 is being captured", hint: "Wait until it is done." };
    await page.click("[type=submit]");
    assert.match(await page.locator(".capture-form .problem").innerText(), /409[\s\S]*w-1 is being captured\s+Wait until it is done/);
    await page.click("[type=submit]");
    await card.waitFor();
    assert.deepEqual(fake.asked.at(-1), ["POST", "captures", "", { targets: ["w-1", "w-9", MARKUP], duration_ms: 60_000, delay_ms: 0, levels: { host: 2, device: 1, python: 1 }, options: { tpu_trace_mode: 1 } }]);
    await waitFor("it is looked at", () => page.evaluate(() => document.activeElement?.className === "job-title"));
    const first = at("id");
    assert.match(first, /^[0-9a-f]{16}$/);
    assert.match(await card.innerText(), /records[\s\S]*recording, ends in [\s\S]*0 of 3 targets done[\s\S]*hosts info, devices on, Python on[\s\S]*tpu_trace_mode=1/);
    for (const is of ["false", "true"]) {
      await card.locator(".job-title").click();
      await waitFor("one at work is closed, and opened again", async () => (await card.locator(".job-title").getAttribute("aria-expanded")) === is);
    }
    // It is in the tray of another page, and ends there.
    await page.click(".rail-item:has-text('Admin')");
    await page.click(".bar button[title='Work in progress: 1 job']");
    assert.ok(Number(await page.locator(".capture-line progress").getAttribute("value")) >= 0);
    fake.finish(fake.state.captures[0], { outcome: "SUCCEEDED", bytes: 5e6 }, { outcome: "UNREACHABLE", grpc_status: 14, message: `refused ${MARKUP}`, hint: "Has the program called start_server?" });
    await page.waitForSelector(".capture-line >> text=1 of 3 targets captured, 4.77 MiB");
    assert.match(await page.locator("#app > [role=status]").innerText(), /1 of 3 targets captured/);
    await page.click(".capture-line a:has-text('2026')");
    await card.waitFor();
    assert.equal(at("id"), first);
    assert.match(await card.innerText(), /in part[\s\S]*w-9[\s\S]*not reached[\s\S]*status 14[\s\S]*refused <img[\s\S]*Has the program called[\s\S]*w-1[\s\S]*succeeded/);
    assert.match(await card.locator("a:has-text('Open the run')").getAttribute("href"), /overview_page\?run=2026_11_30_16_10_00$/);
    // Those that failed, again; dropped, asked twice.
    await card.getByRole("button", { name: "Retry 2 targets" }).click();
    await waitFor("it has begun", () => at("id") !== first && at("id"));
    assert.deepEqual(fake.asked.at(-1)[3], { targets: ["w-9", MARKUP], duration_ms: 60_000, delay_ms: 0, levels: { host: 2, device: 1, python: 1 }, options: { tpu_trace_mode: 1 } });
    await card.first().getByRole("button", { name: "Drop" }).click();
    await card.first().getByRole("button", { name: "Really drop it?" }).click();
    await page.waitForSelector(".job-card >> text=cancelled, nothing kept");
    assert.equal(fake.asked.at(-1)[2], `?id=${at("id")}&drop=1`);
    await page.goBack();
    await waitFor("the first is open again", () => at("id") === first);
    // Continuously.
    fake.refused = ["w-9"];
    await page.click("button:has-text('Continuously')");
    await page.getByRole("button", { name: "None", exact: true }).click();
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "None", "it keeps the focus, though it does nothing more");
    const asked = fake.asked.length;
    await page.click("[type=submit]");
    await waitFor("what is missing has the focus, and says so", () => page.evaluate(() => document.getElementById(document.activeElement.getAttribute("aria-describedby"))?.textContent === "Choose at least one"));
    assert.equal(fake.asked.length, asked);
    await page.locator(".target-list label", { hasText: "w-1" }).click();
    await page.locator(".target-list label", { hasText: "w-9" }).click();
    await page.click("[type=submit]:has-text('Record 2 targets until stopped')");
    await page.waitForSelector(".refused >> text=w-9 does not record: Unimplemented");
    assert.match(await page.locator(".recording").innerText(), /Recording continuously since[\s\S]*w-1[\s\S]*by ann@example\.com/);
    await page.click("button:has-text('For a while')");
    assert.match(await page.locator(".capture-form").innerText(), /w-9|w-1 is being recorded: a program has one profiler|2 targets/);
    await clean("while it records continuously");
    await page.emulateMedia({ colorScheme: "dark" });
    await page.setViewportSize({ width: 380, height: 800 });
    await clean("small and dark");
    assert.ok(await page.evaluate(() => document.querySelector("main").scrollWidth <= document.documentElement.clientWidth));
    await page.screenshot({ path: join(shots, "captures-small-dark.png") });
    await page.goto(`${url}/p/local/trace?run=${PLAIN}&host=w-0`);
    await page.waitForSelector(".drawing canvas");
    await page.click(".bar button[title^='Recording continuously: 1 target, since']");
    await page.click(".recording-sheet button:has-text('Take snapshot')");
    await waitFor("it is taken", () => fake.state.captures[0].kind === "snapshot");
    fake.finish(fake.state.captures[0], { outcome: "SUCCEEDED", bytes: 1e6 });
    await page.click(".recording-sheet button:has-text('Stop')");
    await page.click(".recording-sheet button:has-text('Really stop w-1?')");
    await page.waitForSelector(".recording-dot", { state: "detached" });
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    assert.deepEqual(await check(/status of 40[49]/), []); // share links are off here
    await close();
    await fake.stop();
  });

  test("what a step is can be chosen where the profile does not say, for every page", async () => {
    const asked = [];
    const { page, check, close } = await openWith((q) => {
      asked.push(`${q.get("tool")} ${q.get("step_marker") ?? ""}`);
      const names = ["jit_f(1)", `${MARKUP}(2)`];
      const modules = { ...opTable(2, () => 1, (i) => names[i]), id: "modules" };
      modules.columns = modules.columns.map((c) => (c.id === "op" ? { ...c, id: "module" } : c));
      return { ...everything({ tool: q.get("tool") }), notes: [{ severity: "warning", code: "no_steps", text: "no steps" }], ...(q.get("tool") === "graph_viewer" ? { tables: [modules] } : {}) };
    });
    await page.goto(`${base}overview_page?run=${PLAIN}`);
    await ready(page);
    await page.click(".crumbs button[title='What a step is']");
    await page.click(".step-marker button:text-is('jit_f')");
    await page.waitForSelector(".step-marker", { state: "detached" });
    await waitFor("it is asked for", () => asked.includes("overview_page jit_f"));
    await page.click(".rail-item:has-text('HLO ops')");
    await waitFor("on other pages, too", () => asked.includes("hlo_stats jit_f"));
    await ready(page);
    await page.click(".crumbs button[title^='Steps are those of jit_f']");
    await page.fill(".step-marker input", "train step");
    await page.keyboard.press("Enter");
    await waitFor("another can be typed", () => asked.includes("hlo_stats train step"));
    await ready(page);
    await page.click(".crumbs button[title^='Steps are those of train step']");
    await page.click(".step-marker button:text-is('As the profile says')");
    await waitFor("and none", () => !new URL(page.url()).searchParams.has("step_marker"));
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("an error says what is wrong and can be tried again", async () => {
    let fail = true;
    const { page, close } = await openPage(browser, server.url);
    await page.route(/report\?.*tool=hlo_stats/, (route) => (fail
      ? route.fulfill({ status: 500, contentType: "application/problem+json", body: JSON.stringify({ title: "Internal", code: "internal", detail: "the disk is on fire", hint: "Put it out." }) })
      : route.fulfill({ json: everything({ tool: "hlo_stats" }) })));
    await page.goto(`${base}hlo_stats?run=${PLAIN}`);
    await page.waitForSelector(".problem");
    assert.match(await page.locator(".problem").innerText(), /500[\s\S]*the disk is on fire[\s\S]*Put it out/);
    fail = false;
    await page.click("text=Try again");
    await page.waitForSelector(".tile");
    await close();
  });

  test("at 380 pixels a report is read without scrolling sideways, and the menu opens", async () => {
    const { page, check, close } = await openWith(fixed(), { viewport: { width: 380, height: 800 } });
    await page.goto(`${base}overview_page?run=${PLAIN}`);
    await ready(page);
    const [content, screen] = await page.evaluate(() => [document.querySelector(".tool-page").scrollWidth, document.documentElement.clientWidth]);
    assert.ok(content <= screen, `${content} > ${screen}`);
    await page.click("[aria-label=Menu]");
    await page.waitForSelector(".rail.drawn");
    await page.screenshot({ path: join(shots, "tool-small.png") });
    await page.click(".rail-item:has-text('Roofline')");
    await waitFor("the page changed", () => page.url().includes("roofline_model"));
    assert.deepEqual(await check(), []);
    await close();
  });

  // XPROFD_GOLDENS=all takes every page in both themes, else each in one of them and the timeline in
  // both; =update writes tests/web/goldens anew: look at them before they are kept.
  test("pages look as their goldens do, in both themes", async (t) => {
    const DIFFERENT = 0.1; // of the blocks with something in them; a page that moved by eight pixels is more
    const pages = {
      runs: [`?q=${PLAIN}`, ".runs tbody tr"], overview: [`overview_page?run=${PLAIN}`, ".tool-page[aria-busy=false] .tile"], ops: [`hlo_stats?run=${PLAIN}&q=name`, ".data tbody tr"],
      timeline: [`trace?run=${PLAIN}&host=w-0`, ".drawing canvas"], compare: [`compare?a=${PLAIN}&b=${PLAIN}`, ".waterfall"],
    };
    mkdirSync(goldens, { recursive: true });
    const wrong = [];
    // Loaded once: from page to page as by a link, and the system's theme may change at any time.
    const { page, close } = await openWith(fixed({ rows: 12 }), { viewport: { width: 900, height: 560 }, reducedMotion: "reduce", locale: "en-GB", timezoneId: "UTC" });
    await page.addInitScript(() => {
      document.documentElement.style.setProperty("--font", '"DejaVu Sans"');
      document.documentElement.style.setProperty("--mono", '"DejaVu Sans Mono"');
    });
    const takes = process.env.XPROFD_GOLDENS
      ? ["light", "dark"].flatMap((theme) => Object.keys(pages).map((name) => [theme, name]))
      : [["light", "runs"], ["light", "overview"], ["light", "timeline"], ["dark", "timeline"], ["dark", "ops"], ["dark", "compare"]];
    for (const [i, [colorScheme, name]] of takes.entries()) {
      const [path, sign] = pages[name];
      await page.emulateMedia({ colorScheme });
      if (i === 0) await page.goto(base + path);
      else if (name !== takes[i - 1][1]) await page.evaluate((to) => (history.pushState(null, "", to), dispatchEvent(new PopStateEvent("popstate"))), base + path);
      await page.waitForSelector(sign);
      if (name === "timeline") {
        const isDark = () => page.evaluate(() => {
          const canvas = document.querySelector(".drawing canvas");
          const g = new OffscreenCanvas(1, 1).getContext("2d");
          g.drawImage(canvas, canvas.width - 1, canvas.height - 1, 1, 1, 0, 0, 1, 1);
          return g.getImageData(0, 0, 1, 1).data[0] < 128;
        });
        await waitFor("it is drawn", async () => (await inkOf(page)).saturated > 1000 && (await isDark()) === (colorScheme === "dark"));
      }
      const fonts = await page.evaluate(() => {
        const g = new OffscreenCanvas(1, 1).getContext("2d");
        const width = (font) => ((g.font = `20px ${font}`), g.measureText("Which ops waste the most?").width);
        return ["DejaVu Sans", "DejaVu Sans Mono"].every((f) => width(`"${f}", serif`) !== width("serif"));
      });
      if (!fonts) {
        await close();
        return t.skip("the fonts of the goldens, DejaVu, are not installed");
      }
      // What is another one each time.
      await page.evaluate(() => document.querySelectorAll(".when, .ago, .page-head code, .status, .get-figures, .runs .get, .runs .step-cell, .runs .figure, .runs .na").forEach((e) => (e.style.visibility = "hidden")));
      const png = await page.screenshot({ animations: "disabled", caret: "hide" });
      const seen = decode(png);
      const file = join(goldens, `${name}-${colorScheme}.png`);
      if (process.env.XPROFD_GOLDENS === "update") writeFileSync(file, encodeSmall(seen));
      const share = existsSync(file) ? difference(seen, decode(readFileSync(file))) : 1;
      if (share > DIFFERENT) {
        writeFileSync(join(shots, `golden-${name}-${colorScheme}.png`), png);
        wrong.push(`${name}, ${colorScheme}: ${(100 * share).toFixed(1)} % differ; what was seen: build/screenshots/golden-${name}-${colorScheme}.png`);
      }
    }
    await close();
    assert.deepEqual(wrong, []);
  });

  test("axe finds nothing on any of the pages, in both themes", { skip: !existsSync(axe) && "axe-core is not installed" }, async () => {
    const found = [];
    // XPROFD_AXE=all takes every page in both themes; else each page in one of them.
    const tools = (list) => list.map((t) => `${t}?run=${PLAIN}&op=name%202`);
    const first = ["overview_page", "smart_suggestion", "graph_viewer"];
    const second = ["roofline_model", "memory_viewer", "pod_viewer"];
    const others = ["op_profile", "hlo_stats", "framework_op_stats", "kernel_stats", "input_pipeline_analyzer", "memory_profile", "megascale_stats", "inference_profile", "utilization_viewer", "kernel_utilization", "perf_counters"];
    const shell = ["", `run?run=${PLAIN}`, `trace?run=${PLAIN}&host=w-0&a=0..9000000&tips=1`, `compare?a=${PLAIN}&b=${PLAIN}&buffers=1`, "captures", "admin"];
    const everyPage = [...shell, ...tools([...first, ...second, ...others])];
    const paths = process.env.XPROFD_AXE === "all"
      ? { light: everyPage, dark: everyPage }
      : { light: ["", `${tools(first)[0]}&group=category`, `graph_viewer?run=${PLAIN}&view=icicle`, shell[3], "captures"], dark: ["admin", shell[1], shell[2], tools(second)[0]] };
    const small = (q) => ({ ...everything({ tool: q.get("tool"), rows: 6 }), text: "%a = f32[] add()\n%b = f32[] add()" });
    for (const [colorScheme, list] of Object.entries(paths)) {
      const { page, close } = await openWith(small, { colorScheme, bypassCSP: true, reducedMotion: "reduce" });
      await page.addInitScript({ content: readFileSync(axe, "utf8") });
      for (const path of list) {
        await page.goto(base + path);
        const sign = { "": ".runs tbody tr", run: ".runs tbody tr", trace: ".aggregate tbody tr", compare: ".waterfall", captures: ".snippet", admin: ".tile" }[path.split("?")[0]];
        await page.waitForSelector(sign ?? ".tool-page[aria-busy=false] h1");
        const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
        for (const v of violations) found.push(`${colorScheme} ${path || "runs"}: ${v.id}: ${v.nodes.slice(0, 3).map((n) => `${n.target} ${n.any[0]?.message ?? ""}`).join(" | ")}`);
      }
      await close();
    }
    assert.deepEqual(found, []);
  });
});
