// The pages in a real browser, with the real server and, where it is there, a real TPU profile.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { createServer, request } from "node:http";
import { after, before, describe, test } from "node:test";
import { join } from "node:path";
import {
  api, inkOf, Logdir, missing, openPage, realProfile, shots, startBrowser, startServer, waitFor, windowOf,
} from "./harness.mjs";
import { hostileProfile, linkedProfile, manyProfile, MARKUP, plainProfile, scopedProfile } from "./profile.mjs";

const reason = missing();
const real = realProfile("tpu_v6e_inference", "host0");
if (!real) console.log("# the real TPU profile is not there: a small one made here stands in");

const RUN = "2026_01_31_10_00_00";
const HOST = "worker-0";
const HOSTILE_RUN = "<b onmouseover=alert(1)>run & 'co'";
const STATUS = /console: Failed to load resource/; // the browser's own line about a 4xx or 5xx

describe("the pages", { skip: reason || false, timeout: 600_000 }, () => {
  let logdir, server, browser, base, tracks;

  before(async () => {
    mkdirSync(shots, { recursive: true });
    logdir = new Logdir();
    const profile = real ?? plainProfile();
    logdir.add(RUN, HOST, profile);
    logdir.add("2026_01_30_09_00_00", "worker-0", plainProfile(20));
    logdir.add("2026_01_30_09_00_00", "worker-1", plainProfile(20));
    logdir.add("damaged", "half", profile.subarray(0, Math.floor(profile.length * 0.6)));
    logdir.add("noise", "host0", Buffer.from(Array.from({ length: 4000 }, (_, i) => (i * 7919) & 255)));
    logdir.add("nothing", null);
    logdir.add(HOSTILE_RUN, "host0", hostileProfile());
    logdir.add("many", "host-0", manyProfile(30_000));
    logdir.add("scoped", "host-0", scopedProfile());
    logdir.add("linked", "host-0", linkedProfile());
    server = await startServer(logdir.path);
    browser = await startBrowser();
    base = `${server.url}/p/local/`;
    tracks = await waitFor("the profile is loaded", async () => {
      const got = await api(server.url, "tracks", { run: RUN, host: HOST });
      return got.loading === false && got;
    });
  });

  after(async () => {
    await browser?.close();
    await server?.stop();
    logdir?.remove();
  });

  const trace = (more = "") => `${base}trace?run=${RUN}&host=${HOST}${more}`;

  /** A page on a timeline whose first window is drawn. */
  async function open(url, options) {
    const opened = await openPage(browser, server.url, options);
    await opened.page.goto(url);
    await opened.page.waitForSelector(".drawing canvas");
    await waitFor("something is drawn", async () => (await inkOf(opened.page)).saturated > 20);
    return opened;
  }

  /** A long event on a device line, from the server: something sure to click on. */
  async function target() {
    const line = tracks.planes.flatMap((p) => (p.kind === "device" ? p.lines : [])).find((l) => l.name === "XLA Ops");
    const a = await api(server.url, "aggregate", {
      run: RUN, host: HOST, t0: tracks.begin_ps, t1: tracks.end_ps, rows: line.line, limit: 5,
    });
    return api(server.url, "event", { run: RUN, host: HOST, id: a.rows[0].longest_id });
  }

  /** Client x of the middle of an event that is in view. */
  async function placeOf(page, e) {
    const box = await page.locator(".drawing canvas").boundingBox();
    const [t0, t1] = windowOf(page);
    return box.x + ((e.begin_ps + e.duration_ps / 2 - t0) / (t1 - t0)) * box.width;
  }

  /** Client y of the top of an event's row. */
  async function rowTop(page, e) {
    return page.evaluate(([plane, line]) => {
      let inPlane = false;
      for (const el of [...document.querySelectorAll(".label")].sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)) {
        const heading = el.querySelector(".plane .name");
        if (heading) inPlane = heading.textContent === plane;
        else if (inPlane && el.querySelector(".name")?.textContent === line) return el.getBoundingClientRect().top;
      }
      return null;
    }, [e.plane_name, e.line_name]);
  }

  async function clickEvent(page, e) {
    const x = await placeOf(page, e);
    const top = await rowTop(page, e);
    assert.notEqual(top, null, `${e.plane_name} ${e.line_name} is not in sight`);
    await page.mouse.click(x, top + 2 + e.lane * 17 + 8);
  }

  const around = (e) => `&t=${e.begin_ps - e.duration_ps}..${e.begin_ps + 2 * e.duration_ps}`;

  test("the run list shows every run, newest first, and opens one", async () => {
    const { page, check, close } = await openPage(browser, server.url);
    await page.goto(server.url);
    await page.waitForSelector(".runs a");
    assert.equal(page.url(), base);
    const names = await page.locator(".runs tbody th").allTextContents();
    assert.deepEqual([...names].sort(), ["2026_01_30_09_00_00", RUN, "damaged", "linked", "many", "noise", "nothing", "scoped", HOSTILE_RUN].sort());
    assert.ok(names.indexOf(RUN) < names.indexOf("2026_01_30_09_00_00"), "newest first");
    await page.screenshot({ path: join(shots, "runs-light.png") });
    await page.click(`.runs a:text-is("${RUN}")`);
    await page.waitForSelector(".drawing canvas");
    assert.match(page.url(), new RegExp(`/p/local/trace\\?run=${RUN}&host=${HOST}$`));
    await page.goBack();
    await page.waitForSelector(".runs a");
    await page.fill(".search input", "01_30");
    await waitFor("the list is filtered", async () => (await page.locator(".runs tbody tr").count()) === 1);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("figures of runs are the server's, got on demand, and ordered by; columns are chosen; what is in work can be seen and ended", async () => {
    const { page, check, close } = await openPage(browser, server.url);
    let let_go = () => undefined;
    const held = new Promise((done) => (let_go = done));
    const asked = [];
    const lists = [];
    await page.route(/report\?/, async (route) => {
      const q = new URL(route.request().url()).searchParams;
      asked.push(`${q.get("run")} ${q.get("tool")}`);
      if (q.get("run") === "many") await held;
      return route.continue().catch(() => undefined);
    });
    await page.route(/api\/v1\/runs\?/, async (route) => {
      lists.push(new URL(route.request().url()).searchParams.get("sort"));
      const answer = await route.fetch();
      const list = await answer.json();
      for (const r of list.runs) // whatever pages were opened before
        if (r.run !== RUN || !asked.includes(`${RUN} run_facts`)) r.facts = null;
      const scoped = list.runs.find((r) => r.run === "scoped");
      if (scoped) Object.assign(scoped, { kind: MARKUP, facts: { device_type: MARKUP, step_time_mean: 3_000_000_000, devices: 2, expected_devices: 8, expected_hosts: 4, findings_p0: 1, findings_p1: 0, findings_p2: 2, dropped_events: 1234, workload: MARKUP, why: { peak_memory: "no peak_memory" }, notes: { expected_hosts: MARKUP } } });
      await route.fulfill({ response: answer, json: list });
    });
    await page.goto(server.url);
    await page.waitForSelector(".runs a");
    const line = (run) => page.locator(".runs tbody tr", { has: page.locator(`th a:text-is("${run}")`) });
    const text = await line("scoped").innerText();
    for (const part of ["<img src=x", "3.000 ms", "1/4", "2/8", "1 P0", "2 P2", "1234"]) assert.ok(text.includes(part), `${part} in ${text}`);
    assert.equal(await line("scoped").locator(".na[title='no peak_memory']").count(), 1);
    assert.deepEqual(asked, [], "a list asks for no figures by itself");
    await line(RUN).locator("button.get").click();
    // The small profile that stands in has no steps and no devices that are missing.
    if (real) await line(RUN).getByText("784.1 ms").waitFor({ timeout: 30_000 });
    await waitFor("its figures were asked for", () => asked.includes(`${RUN} run_facts`));
    assert.ok(asked.includes(`${RUN} run_facts`));

    await page.click(".runs thead button:has-text('Step time')");
    await waitFor("the server orders", () => lists.at(-1) === "-step");
    await page.click(".runs thead button:has-text('Step time')");
    await waitFor("the other way", () => lists.at(-1) === "step");
    assert.equal(new URL(page.url()).searchParams.get("sort"), "step");
    assert.equal(await page.locator(".runs thead th", { hasText: "Step time" }).getAttribute("aria-sort"), "ascending");
    const width = async () => (await page.locator(".runs thead th", { hasText: "Run" }).first().boundingBox()).width;
    const before = await width();
    await page.locator(".runs thead button:text-is('Run')").focus();
    for (let i = 0; i < 4; i++) await page.keyboard.press("Shift+ArrowRight");
    await waitFor("the column is wider", async () => (await width()) > before + 40);
    await page.click("button[title='Choose columns']");
    await page.locator(".chooser label", { hasText: "Program" }).locator("input").check();
    await page.locator(".runs thead th", { hasText: "Program" }).waitFor();
    assert.equal(new URL(page.url()).searchParams.get("cols"), "program");
    await page.keyboard.press("Escape");
    await page.screenshot({ path: join(shots, "runs-figures-light.png") });

    await line("many").locator("button.get").click();
    await page.click("[title^='Work in progress']", { timeout: 30_000 });
    assert.match(await page.locator(".jobs").innerText(), /Figures of many/);
    await page.click(".jobs .button");
    await waitFor("nothing is in work", async () => (await page.locator("[title^='Work in progress']").count()) === 0, 30_000);
    assert.equal(await line("many").locator("button.get").count() > 0, true, "it can be asked for again");
    let_go();

    const told = asked.length;
    await page.reload();
    await page.waitForSelector(".runs a");
    if (real) assert.match(await line(RUN).innerText(), /784\.1 ms/, "the server keeps them");
    assert.equal(asked.length, told);
    await page.goto(`${base}run?run=${RUN}`);
    await page.waitForSelector("[data-metric=expected_devices], [data-metric=devices]");
    if (real) assert.match(await page.locator("[data-metric=devices]").innerText(), /4 of 8/);
    const file = await page.request.get(new URL(await page.locator(".runs a[download]").first().getAttribute("href"), page.url()).href);
    assert.match(file.headers()["content-disposition"], /^attachment; filename="worker-0\.xplane\.pb"/);
    await page.goto(`${base}overview_page?run=${RUN}`);
    if (real) await page.locator(".coverage .warned", { hasText: "4 of 8 devices" }).waitFor({ timeout: 30_000 });
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("labels, a note and that a run is hidden are the browser's; runs of one moment are offered as one", async () => {
    const { page, check, close } = await openPage(browser, server.url);
    const both = `${RUN}//linked`;
    await page.route(/api\/v1\/runs\?/, async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, json: { ...(await answer.json()), joins: [{ run: both, hosts: 2, span_ms: 2000 }] } });
    });
    await page.goto(base);
    const line = (run) => page.locator(".runs tbody tr", { has: page.locator(`th a:text-is("${run}")`) });
    await page.click('[aria-label="Labels and note of scoped"]');
    await page.getByLabel("Labels", { exact: true }).fill(`base, ${MARKUP}`);
    await page.getByLabel("Note", { exact: true }).fill("with new kernels");
    await page.click(".mark-dialog button[type=submit]");
    await page.waitForSelector(".mark-dialog", { state: "detached" });
    assert.match(await line("scoped").innerText(), /base[\s\S]*<img src=x[\s\S]*with new kernels/);
    await page.click('[aria-label="Labels and note of many"]');
    await page.click(".mark-dialog button:text-is('Hide it')");
    await line("many").waitFor({ state: "detached" });
    await page.click(".hidden-line button:text-is('Undo')");
    await line("many").waitFor();
    await page.click('[aria-label="Labels and note of many"]');
    await page.click(".mark-dialog button:text-is('Hide it')");
    await page.reload();
    await page.waitForSelector(".hidden-line");
    assert.equal(await line("many").count(), 0, "it stays hidden");
    await page.click(".run-label:text-is('base')");
    await waitFor("only runs with the label", async () => (await page.locator(".runs tbody tr").count()) === 1);
    await page.click(".page-head button:text-is('All')");
    await page.click(".hidden-line button:has-text('Show')");
    await line("many").waitFor();

    for (const run of [RUN, "damaged"]) await line(run).locator("input[type=checkbox]").check();
    const joined = await page.locator(".compare-bar a:text-is('Open joined')").getAttribute("href");
    assert.deepEqual(new URL(joined, base).searchParams.get("run").split("//").sort(), [RUN, "damaged"].sort());
    await page.click(".joins a:text-is('Open joined')");
    await page.waitForSelector(".page-head h1");
    await waitFor("it is one run of two hosts", async () => (await page.locator(".runs tbody tr").count()) === 2);
    assert.equal(await page.locator(".page-head h1").innerText(), both.replace("//", " + "));
    await page.click('.runs tbody a:text-is("host-0")');
    await page.waitForSelector(".drawing canvas");
    await page.goto(`${base}run?run=noise`);
    await waitFor("a file that is no profile says so", async () => /unreadable[\s\S]*no XSpace/.test(await page.locator(".runs tbody").innerText()));
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    assert.deepEqual(await check(STATUS), []);
    await close();
  });

  test("a run of two hosts has a page of its own, and the timeline a choice", async () => {
    const { page, check, close } = await openPage(browser, server.url);
    await page.goto(`${base}run?run=2026_01_30_09_00_00`);
    await page.click('.runs a:text-is("worker-1")');
    await page.waitForSelector(".drawing canvas");
    await page.selectOption(".crumbs select", "worker-0");
    await waitFor("the other host is shown", () => page.url().includes("host=worker-0"));
    await waitFor("and its rows", async () => /worker-0/.test((await page.locator("main h1").allTextContents()).join()));
    await page.click('[title^="All devices of the run"]');
    await page.waitForSelector(".strip canvas");
    assert.match(await page.locator(".strip-words").innerText(), /2 hosts, 4 devices[\s\S]*least busy[\s\S]*8\d\.\d %/);
    const strip = await page.locator(".strip canvas").boundingBox();
    await page.mouse.click(strip.x + strip.width / 2, strip.y + strip.height * 0.9);
    await waitFor("the host of the row", () => page.url().includes("host=worker-1"));
    await page.waitForSelector(".strip canvas");
    await page.screenshot({ path: join(shots, "devices-light.png") });

    await page.click("[title='Another host or run at the same time']");
    await page.click(".beside-choice .button:not([disabled])");
    const beside = () => new URL(page.url()).searchParams.get("with");
    await waitFor("the other host stands below", async () => beside() === "worker-0@0" && (await page.locator(".drawing canvas").count()) === 2);
    await page.keyboard.press("Escape");
    const canvas = page.locator(".drawing canvas");
    for (const i of [0, 1]) {
      await canvas.nth(i).focus();
      await waitFor("an event of each is chosen", async () => (await page.keyboard.press("."), await page.locator(".details h2").count()));
      await waitFor("what the panel is about", async () => (await page.locator(".beside-head.active").innerText()).includes(`worker-${1 - i}`));
    }
    await page.keyboard.press("w");
    await waitFor("the second moves the first", () => windowOf(page));
    await page.fill(".beside-head input", "1.5 us");
    await page.keyboard.press("Enter");
    await waitFor("an offset", () => beside() === "worker-0@1500000");
    await page.screenshot({ path: join(shots, "beside-light.png") });
    await page.click(".beside-head button:has-text('Align')");
    await waitFor("aligned", () => /^worker-0@-?\d+$/.test(beside()) && beside() !== "worker-0@1500000");
    const param = (name) => new URL(page.url()).searchParams.get(name);
    await page.keyboard.press("i");
    await page.waitForSelector(".tips .step-mark");
    assert.ok(await page.locator(".tips .prio").count() > 0, "suggestions stand above the rows");
    assert.match(await page.locator(".tips .prio").first().getAttribute("href"), /smart_suggestion\?run=/);
    await page.click(".tips .popover > .button");
    assert.match(await page.locator(".tips-sheet a").first().getAttribute("href"), /smart_suggestion\?run=[^#]*#finding-/, "each leads to what is said of it");
    assert.equal(await page.locator(".tips-sheet li").count(), await page.locator(".tips-list li").count(), "those of no moment, too");
    await page.keyboard.press("Escape");
    await page.keyboard.press("p");
    await waitFor("a row of the second is pinned", () => /^\d+$/.test(param("pin.1")) && /^\d+$/.test(param("sel.1")) && param("pin") === null);
    await page.locator("section.beside").nth(1).locator(".plane").first().click();
    await waitFor("a group of it is folded", () => param("fold.1") !== null);
    const there = page.url();
    await page.reload();
    await waitFor("both are back", async () => (await canvas.count()) === 2 && /worker-0@/.test(beside()));
    const second = page.locator("section.beside").nth(1);
    await waitFor("with the row and the group", async () => (await second.locator(".label.pinned").count()) === 1 && (await second.locator(".plane[aria-expanded=false]").count()) > 0);
    assert.equal(page.url(), there);
    await page.goBack();
    await waitFor("the fold is undone", async () => param("fold.1") === null && (await second.locator(".plane[aria-expanded=false]").count()) === 0);
    await page.click("[aria-label^='Close worker-0']");
    await waitFor("one is left", async () => beside() === null && (await canvas.count()) === 1);
    // The browser writes an apostrophe as %27: that is no news to answer.
    await page.evaluate(() => {
      const replaceState = history.replaceState.bind(history);
      window.rewrites = 0;
      history.replaceState = (...args) => (window.rewrites++, replaceState(...args));
    });
    await page.locator("input[aria-label^='Search']").first().fill("it's");
    await waitFor("the search is in the address", () => param("q") === "it's");
    await page.waitForTimeout(1000);
    assert.ok((await page.evaluate(() => window.rewrites)) <= 3, "and is written once");
    assert.deepEqual(await check(), []);
    await close();
  });

  test("the timeline paints rows and names", async () => {
    const { page, check, close } = await open(trace());
    let asked = 0;
    page.on("request", (r) => r.url().includes("/window?") && asked++);
    await page.waitForTimeout(700);
    assert.ok(asked <= 2, `${asked} windows asked for while nothing moves`);
    const ink = await inkOf(page);
    assert.ok(ink.colours > 8 && ink.saturated > 2000, JSON.stringify(ink));
    const labels = await page.locator(".labels").textContent();
    for (const name of [tracks.planes[0].name, "XLA Ops"]) assert.ok(labels.includes(name), name);
    await page.screenshot({ path: join(shots, "timeline-light.png") });
    assert.deepEqual(await check(), []);
    await close();
  });

  test("W, S, A, D and 0 move; the wheel zooms where the pointer is", async () => {
    const { page, check, close } = await open(trace());
    await page.keyboard.press("w");
    await page.keyboard.press("w");
    const zoomed = await waitFor("the address says what is in view", () => windowOf(page));
    assert.ok(zoomed[1] - zoomed[0] < (tracks.end_ps - tracks.begin_ps) * 0.8);
    await page.keyboard.press("d");
    const moved = await waitFor("moved right", () => windowOf(page)[0] > zoomed[0] && windowOf(page));
    assert.equal(moved[1] - moved[0], zoomed[1] - zoomed[0]);
    const box = await page.locator(".drawing canvas").boundingBox();
    const at = ([t0, t1]) => t0 + (t1 - t0) * 0.25;
    await page.mouse.move(box.x + box.width * 0.25, box.y + 100);
    await page.mouse.wheel(0, -400);
    const wheeled = await waitFor("zoomed", () => windowOf(page)[1] - windowOf(page)[0] < (moved[1] - moved[0]) * 0.7 && windowOf(page));
    assert.ok(Math.abs(at(wheeled) - at(moved)) < (wheeled[1] - wheeled[0]) * 0.01, "the time under the pointer stays");
    await page.keyboard.press("0");
    await waitFor("the whole session again", () => windowOf(page) === null);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("dragging moves the view with the pointer", async () => {
    const e = await target();
    const { page, check, close } = await open(trace(around(e)));
    const box = await page.locator(".drawing canvas").boundingBox();
    const [t0, t1] = windowOf(page);
    await page.mouse.move(box.x + 600, box.y + 300);
    await page.mouse.down();
    await page.mouse.move(box.x + 400, box.y + 300, { steps: 4 });
    await page.mouse.up();
    const now = await waitFor("moved", () => windowOf(page)[0] !== t0 && windowOf(page));
    const expected = ((t1 - t0) * 200) / box.width;
    assert.ok(Math.abs(now[0] - t0 - expected) < expected * 0.02, `${now[0] - t0} for ${expected}`);

    // On the map a drag chooses what is in view, and one that begins there moves it.
    await page.keyboard.press("0");
    await waitFor("the whole session", () => windowOf(page) === null);
    const map = await page.locator(".minimap canvas").boundingBox();
    const drag = async (from, to) => {
      await page.mouse.move(map.x + from * map.width, map.y + map.height / 2);
      await page.mouse.down();
      await page.mouse.move(map.x + to * map.width, map.y + map.height / 2, { steps: 4 });
      await page.mouse.up();
    };
    await drag(0.25, 0.5);
    const length = tracks.end_ps - tracks.begin_ps;
    const near = (got, share) => Math.abs(got / length - share) < 0.02;
    const painted = await waitFor("a quarter is in view", () => windowOf(page));
    assert.ok(near(painted[0] - tracks.begin_ps, 0.25) && near(painted[1] - painted[0], 0.25), String(painted));
    await drag(0.3, 0.4);
    const dragged = await waitFor("it is moved", () => windowOf(page)[0] !== painted[0] && windowOf(page));
    assert.ok(near(dragged[0] - painted[0], 0.1), String(dragged));
    assert.ok(Math.abs(dragged[1] - dragged[0] - (painted[1] - painted[0])) < length * 1e-6, "as long as it was");
    assert.deepEqual(await check(), []);
    await close();
  });

  test("a click shows the event with exact times and its arguments", async () => {
    const e = await target();
    const { page, check, close } = await open(trace(around(e)));
    await clickEvent(page, e);
    await page.waitForSelector(".details h2");
    assert.equal(await page.locator(".details h2").textContent(), e.display_name || e.name);
    assert.equal(new URL(page.url()).searchParams.get("sel"), String(e.id));
    const durations = await page.locator(".fact").first().getAttribute("title");
    assert.equal(durations, `${e.duration_ps} ps`);
    const rows = await page.locator(".args tr th").allTextContents();
    assert.deepEqual(rows.filter(Boolean), e.args.map((a) => a.name));
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.click('[title="Copy the event as text"]');
    await page.waitForSelector('[title="Copy the event as text"]:has-text("copied")');
    const copied = (await page.evaluate(() => navigator.clipboard.readText())).split("\n");
    assert.deepEqual(copied.slice(0, 3), [e.name, `duration\t${e.duration_ps} ps`, `begin\t${e.begin_ps} ps`]);
    await page.screenshot({ path: join(shots, "event-light.png") });
    const number = e.args.find((a) => /int|double/.test(a.type) && a.value !== null && !a.name.startsWith("_"));
    if (number) {
      await page.click(`[aria-label="Draw ${number.name} as a curve"]`);
      const row = page.locator(".line.curve", { hasText: number.name });
      await waitFor("its values are a curve with a scale", async () => (await row.locator(".count").count()) === 1);
      assert.equal(new URL(page.url()).searchParams.get("curve"), `${e.line}~${number.name}`);
      const want = await api(server.url, "curve", { run: RUN, host: HOST, rows: e.line, stat: number.name, px: 100 });
      assert.ok(want.series[0].values > 0);
      const box = await row.boundingBox();
      const canvas = await page.locator(".drawing canvas").boundingBox();
      await page.mouse.move(canvas.x + canvas.width / 2, box.y + 20);
      await waitFor("the pointer tells the value", async () => (await page.locator(".tip-name").textContent()) === number.name);
      await page.screenshot({ path: join(shots, "curve-light.png") });
      await row.locator("button").click({ force: true });
      await waitFor("it is gone", () => !new URL(page.url()).searchParams.has("curve"));
      await page.locator(".drawing canvas").focus();
    }
    await page.keyboard.press("Escape");
    await waitFor("nothing is selected", () => !new URL(page.url()).searchParams.has("sel"));
    assert.deepEqual(await check(), []);
    await close();
  });

  test("period and comma walk along the row, F fits", async () => {
    const e = await target();
    const { page, check, close } = await open(trace(`${around(e)}&sel=${e.id}`));
    await page.waitForSelector(".details h2");
    const sel = () => new URL(page.url()).searchParams.get("sel");
    if (e.next !== null) {
      await page.keyboard.press(".");
      await waitFor("the next is selected", () => sel() === String(e.next));
      await page.waitForSelector(".details h2");
      await page.keyboard.press(",");
      await waitFor("and the first again", () => sel() === String(e.id));
    }
    await page.keyboard.press("f");
    const [t0, t1] = await waitFor("fits", () => windowOf(page)[1] - windowOf(page)[0] < 2.2 * e.duration_ps && windowOf(page));
    assert.ok(t0 < e.begin_ps && t1 > e.begin_ps + e.duration_ps);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("what an event is linked to is an arrow, and its link leads to the other end", async () => {
    const at = { run: "linked", host: "host-0" };
    const [call] = (await api(server.url, "search", { ...at, q: "launch", limit: 1 })).hits;
    const { flows } = await api(server.url, "event", { ...at, id: call.id });
    assert.equal(flows.length, 1);
    const { page, check, close } = await open(`${base}trace?run=linked&host=host-0&t=0..10000000&sel=${call.id}`);
    /** Pixels of exactly the colour that flows have: the head of an arrow is full of it. */
    const arrow = () => page.evaluate(() => {
      const canvas = document.querySelector(".drawing canvas");
      const g = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
      g.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--flow").trim();
      g.fillRect(0, 0, 1, 1);
      const [r, green, b] = g.getImageData(0, 0, 1, 1).data;
      g.drawImage(canvas, 0, 0);
      const { data } = g.getImageData(0, 0, canvas.width, canvas.height);
      let n = 0;
      for (let i = 0; i < data.length; i += 4) n += data[i] === r && data[i + 1] === green && data[i + 2] === b;
      return n;
    });
    await waitFor("an arrow is drawn", async () => (await arrow()) > 10);
    assert.equal(page.workers().length, 1, "by a worker");
    await page.screenshot({ path: join(shots, "flow-light.png") });
    assert.match(await page.locator(".flows").innerText(), /to \/device:TPU:0 › XLA Ops/);
    await page.click(".flows .link");
    await waitFor("the other end", async () => (await page.locator(".details h2").allTextContents()).join() === "fusion.1");
    assert.equal(new URL(page.url()).searchParams.get("sel"), String(flows[0].ids[0]));
    assert.match(await page.locator(".flows").innerText(), /from \/host:CPU › python/);
    await waitFor("the same arrow", async () => (await arrow()) > 10);
    await page.locator(".drawing canvas").focus();
    await page.keyboard.press("Escape");
    await waitFor("nothing is chosen, no arrow is left", async () => (await arrow()) === 0);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("where no worker can be had, or it does not start, the page draws by itself", async () => {
    const without = {
      "no canvas can be handed over": (page) => page.addInitScript(() => delete HTMLCanvasElement.prototype.transferControlToOffscreen),
      "the worker's script is lost": (page) => page.route(/assets\/worker/, (route) => route.abort()),
    };
    for (const [what, take] of Object.entries(without)) {
      const { page, check, close } = await openPage(browser, server.url);
      await take(page);
      await page.goto(`${base}trace?run=linked&host=host-0`);
      await page.waitForSelector(".drawing canvas");
      await waitFor(`${what}: drawn`, async () => (await inkOf(page)).saturated > 1000);
      await waitFor(`${what}: by no worker`, () => page.workers().length === 0);
      await page.keyboard.press("w");
      await waitFor(`${what}: it moves`, () => windowOf(page));
      await waitFor(`${what}: drawn again`, async () => (await inkOf(page)).saturated > 1000);
      assert.deepEqual(await check(STATUS), [], what);
      await close();
    }
  });

  test("search counts over the whole profile, steps through hits and lights them up", async () => {
    const { page, check, close } = await open(trace());
    const want = await api(server.url, "search", { run: RUN, host: HOST, q: "copy", limit: 3 });
    assert.ok(want.total > 2);
    await page.keyboard.press("/");
    await page.keyboard.type("copy");
    const digits = async (selector) => (await page.locator(selector).textContent()).replace(/\D/g, "");
    await waitFor("the count is there", async () => (await page.locator(".hits-list b").count()) && (await digits(".hits-list b")) === String(want.total));
    const sel = () => new URL(page.url()).searchParams.get("sel");
    await page.keyboard.press("Enter");
    await waitFor("the first hit", () => sel() === String(want.hits[0].id));
    await page.locator(".drawing canvas").focus();
    await page.keyboard.press("]");
    await waitFor("the second hit", () => sel() === String(want.hits[1].id));
    await page.keyboard.press("[");
    await waitFor("the first again", () => sel() === String(want.hits[0].id));
    assert.equal(await page.locator(".search output").textContent().then((t) => t.split("/")[0].trim()), "1");
    assert.equal(new URL(page.url()).searchParams.get("q"), "copy");
    await page.screenshot({ path: join(shots, "search-light.png") });
    await page.keyboard.press("/");
    await page.keyboard.press("Control+A");
    await page.keyboard.type("no such event anywhere");
    await page.waitForSelector(".dock-panel .none:has-text('Nothing in the whole profile')");
    assert.deepEqual(await check(), []);
    await close();
  });

  test("Shift and drag sums up an area as the server does", async () => {
    const e = await target();
    const { page, check, close } = await open(trace(around(e)));
    const box = await page.locator(".drawing canvas").boundingBox();
    const top = await rowTop(page, e);
    await page.keyboard.down("Shift");
    await page.mouse.move(box.x + 200, top + 6);
    await page.mouse.down();
    await page.mouse.move(box.x + 800, top + 8, { steps: 4 });
    await page.mouse.up();
    await page.keyboard.up("Shift");
    await page.waitForSelector(".aggregate tbody tr");
    const address = new URL(page.url()).searchParams;
    const [t0, t1] = address.get("a").split("..");
    assert.equal(address.get("ar"), String(e.line));
    const want = await api(server.url, "aggregate", { run: RUN, host: HOST, t0, t1, rows: e.line, limit: 300 });
    assert.equal(await page.locator(".aggregate tbody tr:not(.rest)").count(), want.rows.length);
    assert.equal(await page.locator(".aggregate tbody .link").first().textContent(), want.rows[0].name);
    await page.screenshot({ path: join(shots, "area-light.png") });
    await page.click(".aggregate thead button:has-text('Count')");
    await page.click(".aggregate button:has-text('Flame graph')");
    await page.waitForSelector(".dock .icicle .slab");
    await waitFor("it is in the address", () => new URL(page.url()).searchParams.get("as") === "flame");
    assert.match(await page.locator(".dock .icicle").textContent(), new RegExp(e.line_name));
    await page.screenshot({ path: join(shots, "flame-light.png") });
    await page.click(".aggregate button:has-text('Zoom to it')");
    await waitFor("zoomed to it", () => Math.abs(windowOf(page)[0] - Number(t0)) <= 200);
    assert.equal(await page.locator(".zooms button").count(), 2);
    await page.click(".zooms button:has-text('All')");
    await waitFor("all of it", async () => windowOf(page) === null && (await page.locator(".zooms").count()) === 0);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("kinds of work stand back when they are switched off, and colours can be others", async () => {
    const { page, check, close } = await open(trace());
    const before = await inkOf(page);
    await page.click("[title='Colours: kinds of work']");
    const least = page.locator(".bounds input").first();
    const bound = (text) => (least.fill(text).then(() => least.press("Enter")));
    await bound("1000s");
    await waitFor("what is shorter stands back", async () => (await inkOf(page)).saturated < before.saturated / 2);
    assert.equal(await page.inputValue(".search input"), "dur>=1000s");
    await bound("1ps");
    await waitFor("nothing is shorter", async () => (await inkOf(page)).saturated > before.saturated * 0.9);
    await bound("");
    assert.equal(await page.inputValue(".search input"), "");
    await page.selectOption(".popover-sheet select", "contrast");
    await waitFor("one colour a kind of work", async () => (await inkOf(page)).colours < before.colours);
    await waitFor("the address says so", () => new URL(page.url()).searchParams.get("palette") === "contrast");
    for (const kind of ["Compute", "Copy", "Host", "Communication"]) await page.click(`.popover-sheet label:has-text('${kind}')`);
    await waitFor("most stands back", async () => (await inkOf(page)).saturated < before.saturated / 2);
    await waitFor("it is in the address", () => new URL(page.url()).searchParams.get("off") === "compute,communication,copy,host");
    await page.reload();
    await page.waitForSelector(".drawing canvas");
    await waitFor("drawn so again", async () => {
      const { colours, saturated } = await inkOf(page);
      return colours > 3 && saturated < before.saturated / 2;
    });
    assert.deepEqual(await check(), []);
    await close();
    const other = await open(trace("&palette=contrast")); // who has the usual ones
    await waitFor("a link's colours hold", async () => (await inkOf(other.page)).colours < before.colours);
    await other.page.click("[title='Colours: kinds of work']");
    await other.page.selectOption(".popover-sheet select", "usual");
    await waitFor("until others are chosen", async () => (await inkOf(other.page)).colours === before.colours && !other.page.url().includes("palette"));
    assert.deepEqual(await other.check(), []);
    await other.close();
  });

  test("an address restores window, selection, area, search and folding", async () => {
    const e = await target();
    const fold = tracks.planes.find((p) => p.plane !== e.plane && p.events > 0).plane;
    const query = `${around(e)}&q=copy&sel=${e.id}&a=${e.begin_ps}..${e.begin_ps + e.duration_ps}&ar=${e.line}&fold=${fold}&order=-count&among=count%3E%3D1&drag=zoom`;
    const { page, check, close } = await open(trace(query));
    await page.waitForSelector(".tabs");
    assert.equal(page.url(), trace(query));
    assert.equal(await page.inputValue(".search input"), "copy");
    await page.click("#tab-details");
    await page.waitForSelector(".details h2");
    assert.equal(await page.locator(".details h2").textContent(), e.display_name || e.name);
    assert.equal(page.url(), `${trace(query)}&dock=details`, "another panel than comes up by itself");
    await page.goBack();
    await page.waitForSelector(".aggregate tbody tr");
    assert.equal(await page.locator(".aggregate [aria-sort=descending]").innerText(), "Count");
    assert.match(await page.locator(".group [aria-pressed=true]").getAttribute("title"), /zooms/);
    assert.equal(await page.locator(`.plane[aria-expanded=false]:has-text("${tracks.planes.find((p) => p.plane === fold).name}")`).count(), 1);
    assert.equal(page.url(), trace(query), "reading changes nothing");
    assert.deepEqual(await check(), []);
    await close();
  });

  test("a link to an event alone shows it in view", async () => {
    const e = await target();
    const { page, check, close } = await open(trace(`&sel=${e.id}`));
    await page.waitForSelector(".details h2");
    assert.equal(await page.locator(".details h2").textContent(), e.display_name || e.name);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("the back button undoes one discrete step, not each movement", async () => {
    const e = await target();
    const { page, check, close } = await open(trace(around(e)));
    for (let i = 0; i < 5; i++) await page.keyboard.press("d");
    for (let i = 0; i < 5; i++) await page.keyboard.press("a");
    await page.waitForTimeout(400);
    await page.goto(trace(around(e)));
    await page.waitForSelector(".drawing canvas");
    await waitFor("drawn", async () => (await inkOf(page)).saturated > 20);
    const first = page.url();
    await clickEvent(page, e);
    await waitFor("selected", () => page.url().includes("sel="));
    await page.keyboard.press("f");
    await waitFor("fitted", () => windowOf(page)[1] - windowOf(page)[0] < 2.2 * e.duration_ps);
    await page.goBack();
    await waitFor("back to before F", () => page.url().includes("sel=") && windowOf(page)[1] - windowOf(page)[0] > 2.5 * e.duration_ps);
    await page.goBack();
    await waitFor("back to before the click", () => page.url() === first);
    await page.goForward();
    await page.waitForSelector(".details h2");
    assert.deepEqual(await check(), []);
    await close();
  });

  test("of a profile with very many rows the first are shown, and the others are found by name", async () => {
    const { page, check, close } = await openPage(browser, server.url);
    let most = 0;
    page.on("response", async (r) => r.url().includes("/tracks?") && (most = Math.max(most, (await r.body().catch(() => "")).length)));
    await page.goto(`${base}trace?run=many&host=host-0`);
    await page.waitForSelector(".drawing canvas");
    await page.keyboard.press("l");
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("aria-label")), "Find rows");
    const more = page.locator(".more-rows");
    await page.evaluate(() => (document.querySelector(".scroller").scrollTop = 1e9));
    const made = await api(server.url, "tracks", { run: "many", host: "host-0", derived: "only", wait: "all" });
    assert.match(made.derived_note, /30000 planes/);
    await waitFor("it says how many there are", async () => /^2\D?000 of 60\D000 rows/.test(await more.textContent()));
    await more.locator("button").click();
    await page.evaluate(() => (document.querySelector(".scroller").scrollTop = 1e9));
    await waitFor("the next are there", async () => /^4\D?000 of 60\D000 rows/.test(await more.textContent()));
    await page.screenshot({ path: join(shots, "many-rows-light.png") });
    await page.fill(".finder input", "tpu:29876 ops");
    await waitFor("the row is found", async () => (await page.locator(".plane .name").allTextContents()).join() === "/device:TPU:29876");
    assert.equal(new URL(page.url()).searchParams.get("find"), "tpu:29876 ops");
    await waitFor("and drawn", async () => (await inkOf(page)).saturated > 20);
    await page.reload();
    await page.waitForSelector('.plane:has-text("TPU:29876")');
    await page.fill(".finder input", "nowhere");
    await page.waitForSelector(".more-rows:has-text('No row')");
    await page.focus(".finder input");
    await page.keyboard.press("Escape");
    await page.waitForSelector('.plane:has-text("TPU:0")');
    assert.ok(most > 0 && most < 1 << 20, `${most} bytes of tracks at once`);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("derived lines come after the recorded ones are shown, and can be walked like them", async () => {
    const { page, check, close } = await openPage(browser, server.url);
    const asked = [];
    page.on("request", (r) => asked.push(/derived=/.test(r.url()) ? "derived" : new URL(r.url()).pathname.split("/").pop()));
    await page.goto(`${base}trace?run=scoped&host=host-0`);
    const line = page.locator(".line:has(.name.derived)");
    await waitFor("they are there", async () => (await line.count()) === 2);
    assert.ok(asked.indexOf("window") < asked.indexOf("derived"), asked.join());
    assert.match(await line.first().getAttribute("title"), /derived: name scopes/);
    const t = await api(server.url, "tracks", { run: "scoped", host: "host-0", derived: "only" });
    const [scopes] = t.planes[0].lines;
    const hit = (await api(server.url, "search", { run: "scoped", host: "host-0", q: "layer", rows: scopes.line, limit: 1 })).hits[0];
    await page.goto(`${base}trace?run=scoped&host=host-0&sel=${hit.id}`);
    await page.waitForSelector(".details h2");
    assert.equal(await page.locator(".details h2").textContent(), "layer0");
    assert.match(await page.locator(".details").textContent(), /Framework Name Scope · derived/);
    await page.keyboard.press(".");
    await waitFor("the next of its line", async () => (await page.locator(".details h2").allTextContents()).join() === "layer1");
    await page.screenshot({ path: join(shots, "derived-light.png") });
    assert.deepEqual(await check(), []);
    await close();
  });

  test("rows are pinned, ordered and hidden, and an address brings that back", async () => {
    const { page, check, close } = await open(trace());
    const param = (name) => new URL(page.url()).searchParams.get(name);
    const box = await page.locator(".drawing canvas").boundingBox();
    const e = await target();
    const over = async (fact) => page.mouse.move(box.x + 300, (await rowTop(page, fact)) + 8);
    const modules = tracks.planes.find((p) => p.plane === e.plane).lines.find((l) => l.name === "XLA Modules");
    await over(e);
    await page.keyboard.press("p");
    await waitFor("pinned", () => param("pin") === String(e.line));
    await over({ ...e, line_name: "XLA Modules" });
    await page.keyboard.press("p");
    await waitFor("both are pinned", () => param("pin") === `${e.line},${modules.line}`);
    const top = () => page.locator(".label.pinned .name").allTextContents();
    assert.match((await top())[0], /XLA Ops$/);
    await page.click('.label.pinned [title="Move up"]');
    await waitFor("they change places", () => param("pin") === `${modules.line},${e.line}`);
    await page.evaluate(() => (document.querySelector(".scroller").scrollTop = 1e9));
    await page.waitForTimeout(200);
    await waitFor("a pinned row stays where it is", async () => Math.abs((await page.locator(".label.pinned").first().boundingBox()).y - (box.y + 28)) <= 1);
    const at = ((e.begin_ps + e.duration_ps / 2 - tracks.begin_ps) / (tracks.end_ps - tracks.begin_ps)) * 0.98 + 0.01;
    const second = await page.locator(".label.pinned").nth(1).boundingBox();
    await page.mouse.click(box.x + at * box.width, second.y + 10);
    await page.waitForSelector(".details h2");
    await waitFor("an event of the pinned row", async () => (await page.locator(".details").textContent()).includes("XLA Ops"));
    await page.keyboard.press("h");
    await waitFor("hidden", () => param("hide") === String(e.line) && param("pin") === String(modules.line));
    await page.reload();
    await page.waitForSelector(".label.pinned");
    assert.match((await top()).join(), /^[^,]*XLA Modules$/);
    await page.screenshot({ path: join(shots, "pinned-light.png") });
    await page.click('.finder button:has-text("1 hidden")');
    await waitFor("shown again", () => param("hide") === null);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("the rows are a table, too, that leads to their events by keyboard", async () => {
    const { page, check, close } = await open(trace());
    const name = `${tracks.planes[0].name} › XLA Ops`;
    const line = tracks.planes[0].lines.find((l) => l.name === "XLA Ops");
    await page.keyboard.press("e");
    await page.focus(`.hits-list button.link:text-is("${name}")`);
    await page.keyboard.press("Enter");
    const first = (await api(server.url, "search", { run: RUN, host: HOST, q: "dur>=0ps", rows: line.line, limit: 1 })).hits[0];
    await waitFor("its first event", () => new URL(page.url()).searchParams.get("sel") === String(first.id));
    await page.keyboard.press(".");
    await waitFor("the next one", () => ![null, String(first.id)].includes(new URL(page.url()).searchParams.get("sel")));
    await page.click("#tab-rows");
    await page.click(`[aria-label$="list the events of ${name}"]`);
    const list = (await api(server.url, "search", { run: RUN, host: HOST, q: "dur>=0ps", rows: line.line, limit: 3 })).hits;
    await waitFor("they are listed", async () => (await page.locator("#dock-panel tbody tr").count()) > 0);
    assert.match(await page.locator("#dock-panel").innerText(), /\d ns/, "to the nanosecond");
    await page.keyboard.press("0");
    await waitFor("all of them", async () => (await page.locator("#dock-panel [role=status]").innerText()).replace(/\s/g, "").startsWith(`${line.events}event`));
    await page.locator("#dock-panel tbody .link").nth(2).focus();
    await page.keyboard.press("Enter");
    await waitFor("the third is chosen", () => new URL(page.url()).searchParams.get("sel") === String(list[2].id));
    assert.equal(new URL(page.url()).searchParams.get("dock"), "events");
    await waitFor("and told", async () => (await page.locator("p.unseen[aria-live]").first().innerText()).includes("XLA Ops"));
    await page.click("#tab-rows");
    await page.click("text=Layouts");
    await page.fill("[aria-label='Name of the layout']", "as it was");
    await page.keyboard.press("Enter");
    await page.uncheck(`[aria-label="${name} shown"]`);
    await waitFor("hidden", () => new URL(page.url()).searchParams.get("hide") === String(line.line));
    await page.click("text=Layouts");
    await page.click(".layouts .link");
    await waitFor("shown", () => !new URL(page.url()).searchParams.has("hide"));
    await page.screenshot({ path: join(shots, "rows-table-light.png") });
    assert.deepEqual(await check(), []);
    await close();
  });

  test("a span is measured to the ends of events, times are marked with notes", async () => {
    const e = await target();
    const { page, check, close } = await open(trace(around(e)));
    const param = (name) => new URL(page.url()).searchParams.get(name);
    const box = await page.locator(".drawing canvas").boundingBox();
    const [t0, t1] = windowOf(page);
    const x = (t) => box.x + ((t - t0) / (t1 - t0)) * box.width;
    const y = (await rowTop(page, e)) + 2 + e.lane * 17 + 8;
    await page.keyboard.press("4");
    await page.mouse.move(x(e.begin_ps) + 3, y);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width / 2, y, { steps: 3 });
    await page.mouse.move(x(e.begin_ps + e.duration_ps) - 3, y, { steps: 3 });
    await page.mouse.up();
    await waitFor("exactly the event", () => param("m") === `${e.begin_ps}..${e.begin_ps + e.duration_ps}`);
    await page.keyboard.press("m");
    const note = page.locator(".bookmarks input");
    await note.fill("slow, why?");
    await note.press("Enter");
    await waitFor("the note is in the address", () => /^\d+~slow/.test(param("bm") ?? ""));
    await page.screenshot({ path: join(shots, "measured-light.png") });
    const address = page.url();
    await page.reload();
    await page.waitForSelector(".drawing canvas");
    await page.waitForTimeout(500);
    assert.equal(page.url(), address);
    assert.equal(await page.inputValue(".bookmarks input"), "slow, why?");
    assert.equal(param("drag"), "measure", "what dragging does stays, too");
    await page.click('.bookmarks button[title="Remove"]');
    await waitFor("it is gone", () => param("bm") === null);
    await page.locator(".drawing canvas").focus();
    await page.keyboard.press("Escape");
    await waitFor("dragging moves again", () => param("drag") === null && param("m") !== null);
    await page.keyboard.press("Escape");
    await waitFor("no measure any more", () => param("m") === null);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("a group folds, and stays so in the address", async () => {
    const { page, check, close } = await open(trace());
    const name = tracks.planes[0].name;
    const before = await page.locator(".label .line").count();
    await page.click(`.plane:has-text("${name}")`);
    await waitFor("the address says so", () => new URL(page.url()).searchParams.get("fold") === String(tracks.planes[0].plane));
    await page.reload();
    await page.waitForSelector(`.plane[aria-expanded=false]:has-text("${name}")`);
    assert.ok(before > 0);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("everything can be reached by the keyboard alone", async () => {
    const { page, check, close } = await openPage(browser, server.url);
    await page.goto(base);
    await page.waitForSelector(".runs a");
    for (let i = 0; i < 120; i++) {
      await page.keyboard.press("Tab");
      if ((await page.evaluate(() => document.activeElement?.textContent)) === RUN) break;
    }
    await page.keyboard.press("Enter");
    await page.waitForSelector(".drawing canvas");
    await waitFor("something is drawn", async () => (await inkOf(page)).saturated > 20);
    await page.keyboard.press(".");
    await page.waitForSelector(".details h2");
    const first = new URL(page.url()).searchParams.get("sel");
    await page.keyboard.press("j");
    await waitFor("another row's event", () => ![null, first].includes(new URL(page.url()).searchParams.get("sel")));
    await page.keyboard.press("f");
    await waitFor("fitted", () => windowOf(page));
    await page.keyboard.press("?");
    await page.waitForSelector("dialog[open]");
    await page.screenshot({ path: join(shots, "help-light.png") });
    await page.keyboard.press("Escape");
    await waitFor("the help is closed", async () => (await page.locator("dialog[open]").count()) === 0);
    assert.ok(await page.locator(".details h2").count(), "and nothing else was");
    await page.keyboard.press("Escape");
    await waitFor("nothing is selected", () => !new URL(page.url()).searchParams.has("sel"));

    const param = (name) => new URL(page.url()).searchParams.get(name);
    const moved = async (key) => { // a machine that is busy may hold a key longer: the way it goes is what counts
      const from = windowOf(page);
      await page.keyboard.press(key);
      await waitFor(`${key} moves`, () => windowOf(page)?.join() !== from.join());
      const to = windowOf(page);
      return [Math.sign(to[0] - from[0]), Math.sign(to[1] - from[1])];
    };
    for (const [key, ways] of [["d", [1, 1]], ["ArrowLeft", [-1, -1]], ["Shift+ArrowRight", [1, 1]], ["Shift+A", [-1, -1]], ["Shift+W", [1, -1]], ["s", [-1, 1]]])
      assert.deepEqual(await moved(key), ways, key);
    await page.keyboard.press("Home");
    await waitFor("the whole session", () => param("t") === null);
    const pressed = page.locator(".group [aria-pressed=true]");
    for (const [key, mode] of [["1", /selects/], ["3", /zooms/], ["4", /measures/], ["2", /moves/]]) {
      await page.keyboard.press(key);
      await waitFor(`${key} is what dragging does`, async () => mode.test(await pressed.getAttribute("title")));
    }
    await page.keyboard.press(".");
    await page.waitForSelector(".details h2");
    for (const [key, name] of [["r", "a"], ["m", "bm"], ["p", "pin"], ["h", "hide"], ["v", "strip"], ["i", "tips"]]) {
      await page.keyboard.press(key);
      await waitFor(`${key} is in the address`, () => param(name) !== null);
    }
    assert.equal(param("pin"), null, "a hidden row is pinned no more");
    await page.focus("[role=tab][aria-selected=true]");
    await page.keyboard.press("ArrowLeft");
    await waitFor("the tab before", async () => /^tab-/.test(await page.evaluate(() => document.activeElement.id)) && param("dock") !== null);
    await page.keyboard.press("q");
    await waitFor("the panel is gone", async () => (await page.locator(".dock").count()) === 0);
    await waitFor("keys go on at the canvas", () => page.evaluate(() => document.activeElement.tagName === "CANVAS"));
    await page.keyboard.press("Control+k");
    await page.waitForSelector("dialog[open]");
    await page.keyboard.press("Escape");
    await waitFor("the palette is gone", async () => (await page.locator("dialog[open]").count()) === 0);
    await page.keyboard.press("w");
    const t = await waitFor("a view", () => param("t"));
    await page.keyboard.press("g");
    await page.keyboard.press("o");
    await waitFor("the overview knows the view as it was last", () => page.url().includes("/overview_page?") && param("t") === t);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("a screen with other pixels, a room of another size and a sleep are drawn anew", async () => {
    const { page, check, close } = await open(trace());
    const canvas = () => page.evaluate(() => {
      const { width, height, clientWidth, clientHeight } = document.querySelector(".drawing canvas");
      return [width / clientWidth, height / clientHeight];
    });
    const cdp = await page.context().newCDPSession(page);
    const screen = (width, height, deviceScaleFactor) => cdp.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor, mobile: false });
    await screen(1400, 840, 2);
    await page.keyboard.press("w");
    await waitFor("two pixels for one", async () => (await canvas()).every((k) => Math.abs(k - 2) < 0.01));
    await screen(900, 600, 1);
    await waitFor("a smaller room", async () => (await canvas()).every((k) => Math.abs(k - 1) < 0.01));
    await cdp.send("Page.setWebLifecycleState", { state: "frozen" });
    await cdp.send("Page.setWebLifecycleState", { state: "active" });
    await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
    await page.keyboard.press("0");
    await waitFor("the whole session", () => windowOf(page) === null);
    await waitFor("it is drawn", async () => (await inkOf(page)).saturated > 20);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("on a telephone two fingers zoom, one that stays or comes moves, and nothing stands out sideways", async () => {
    const { page, check, close } = await open(trace(), { viewport: { width: 380, height: 760 }, hasTouch: true });
    const cdp = await page.context().newCDPSession(page);
    const touch = (type, ...points) => cdp.send("Input.dispatchTouchEvent", { type, touchPoints: points.map(([x, id]) => ({ x, y: 400, id })) });
    const box = await page.locator(".drawing canvas").boundingBox();
    const middle = box.x + box.width / 2;
    await touch("touchStart", [middle - 20, 0]);
    await touch("touchStart", [middle - 20, 0], [middle + 20, 1]);
    await touch("touchMove", [middle - 60, 0], [middle + 60, 1]);
    const zoomed = () => windowOf(page) && windowOf(page)[1] - windowOf(page)[0] < 0.7 * (tracks.end_ps - tracks.begin_ps) && windowOf(page);
    const [a] = await waitFor("zoomed in by as much as the fingers went apart", zoomed);
    await touch("touchEnd", [middle - 60, 0]);
    await touch("touchMove", [middle + 20, 1]);
    await touch("touchEnd", [middle + 20, 1]);
    const moved = await waitFor("moved by the one that stayed", () => windowOf(page)[0] > a && windowOf(page));
    await touch("touchStart", [middle, 0]);
    await touch("touchMove", [middle + 60, 0]);
    await touch("touchEnd", [middle + 60, 0]);
    await waitFor("and back by another", () => windowOf(page)[0] < moved[0]);
    assert.equal(new URL(page.url()).searchParams.get("sel"), null, "nothing was chosen by the way");
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 380);
    for (const name of ["Fit the selection", "Suggestions and late steps", "Share this view"]) assert.ok(await page.getByRole("button", { name }).isVisible(), name);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("an unknown run, host and event each say what is wrong", async () => {
    for (const [url, code] of [[`${base}trace?run=nope&host=x`, 404], [`${base}run?run=nope`, 404], [trace("x"), 404]]) {
      const { page, check, close } = await openPage(browser, server.url);
      await page.goto(url);
      await page.waitForSelector(".problem");
      const said = await page.locator(".problem").first().textContent();
      assert.ok(said.includes(String(code)), said);
      assert.ok(await page.locator(".problem button:has-text('Try again')").count());
      await page.screenshot({ path: join(shots, "error-light.png") });
      assert.deepEqual(await check(STATUS), []);
      await close();
    }
    const { page, check, close } = await open(trace("&sel=999999999999"));
    await page.waitForSelector(".dock .problem");
    assert.deepEqual(await check(STATUS), []);
    await close();
  });

  test("a page that is none of ours says so", async () => {
    const { page, check, close } = await openPage(browser, server.url);
    await page.goto(`${base}nonsense`);
    await page.waitForSelector(".empty h2");
    assert.deepEqual(await check(STATUS), []);
    await close();
  });

  test("a damaged profile shows what was read and where the damage is", async () => {
    const { page, check, close } = await open(`${base}trace?run=damaged&host=half`);
    await page.waitForSelector(".banner.warn");
    const said = await page.locator(".banner.warn").textContent();
    assert.match(said, /damaged/);
    assert.match(said, /At byte [\d\u202f]+/);
    await page.screenshot({ path: join(shots, "damaged-light.png") });
    assert.deepEqual(await check(), []);
    await close();
  });

  test("noise instead of a profile is no timeline and no crash", async () => {
    const { page, check, close } = await openPage(browser, server.url);
    await page.goto(`${base}trace?run=noise&host=host0`);
    await page.waitForSelector(".problem, .empty");
    assert.match(await page.locator("main").textContent(), /expected|damaged/i);
    assert.deepEqual(await check(STATUS), []);
    await close();
  });

  test("a run without profiles and a directory without runs say what was read and expected", async () => {
    const { page, close } = await openPage(browser, server.url);
    await page.goto(`${base}run?run=nothing`);
    await page.waitForSelector(".empty, .problem");
    assert.match(await page.locator("main").textContent(), /xplane\.pb/);
    await close();
    const bare = new Logdir();
    const other = await startServer(bare.path);
    const opened = await openPage(browser, other.url);
    await opened.page.goto(other.url);
    await opened.page.waitForSelector(".empty dl");
    const said = await opened.page.locator(".empty").textContent();
    for (const word of ["Read", "Found", "Expected", "xplane.pb"]) assert.ok(said.includes(word), said);
    await opened.page.screenshot({ path: join(shots, "empty-light.png") });
    bare.add("late", "host0", plainProfile(3));
    await opened.page.waitForSelector('.runs a:text-is("late")', { timeout: 20_000 });
    assert.deepEqual(await opened.check(), []);
    await opened.close();
    await other.stop();
    bare.remove();
  });

  test("a window that fails says so above the rows, and trying again helps", async () => {
    const { page, check, close } = await openPage(browser, server.url);
    let failing = true;
    await page.route("**/api/v1/window?**", (route) => failing
      ? route.fulfill({ status: 500, contentType: "application/problem+json", body: '{"title":"Internal","status":500,"code":"internal","detail":"a bad day"}' })
      : route.continue());
    await page.goto(trace());
    await page.waitForSelector(".banners .problem:has-text('a bad day')");
    failing = false;
    await page.click(".banners .problem button");
    await waitFor("drawn after all", async () => (await inkOf(page)).saturated > 20);
    assert.equal(await page.locator(".banners .problem").count(), 0);
    assert.deepEqual(await check(STATUS), []);
    await close();
  });

  test("while a profile is loading its numbers are shown, and the rows fill in", async () => {
    const { page, check, close } = await openPage(browser, server.url);
    let asked = 0;
    let seen = false;
    await page.route("**/api/v1/tracks?**", async (route) => {
      const answer = await route.fetch().then((r) => r.json()).catch(() => null); // null: the page is gone
      if (!answer) return;
      const loading = !seen;
      asked++;
      const planes = answer.planes.map((p, i) => (loading && i > 0 ? { ...p, state: "waiting", events: 0 } : p));
      await route.fulfill({ json: { ...answer, planes, loading, bytes_done: loading ? 1048576 * Math.min(asked, 9) : answer.bytes_total, bytes_total: 10485760, planes_done: loading ? 1 : planes.length } }).catch(() => undefined);
    });
    await page.goto(trace());
    await page.waitForSelector(".loading-banner");
    assert.match(await page.locator(".loading-banner").textContent(), /\d\.\d\d MiB of 10\.0 MiB .* planes 1 of/);
    await waitFor("it is asked for again and again", () => asked > 2);
    await page.screenshot({ path: join(shots, "loading-light.png") });
    seen = true;
    await waitFor("loaded", async () => (await page.locator(".loading-banner").count()) === 0);
    await waitFor("drawn", async () => (await inkOf(page)).saturated > 20);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("leaving a view ends what it asked for", async () => {
    const { page, close } = await openPage(browser, server.url);
    const ended = [];
    let asked = 0;
    page.on("requestfailed", (r) => ended.push(`${r.url().split("?")[0].split("/").pop()} ${r.failure()?.errorText}`));
    await page.route("**/api/v1/window?**", () => void asked++); // which is never answered
    await page.goto(trace());
    await page.waitForSelector(".drawing canvas");
    await waitFor("it asks", () => asked > 0);
    await page.click(".brand");
    await page.waitForSelector(".runs a");
    await waitFor("aborted", () => ended.includes("window net::ERR_ABORTED"));
    await close();
  });

  test("names with markup stay text everywhere", async () => {
    const { page, check, close } = await openPage(browser, server.url);
    await page.goto(base);
    await page.waitForSelector(".runs a");
    await page.click(`.runs a:has-text("onmouseover")`);
    await page.waitForSelector(".drawing canvas");
    await waitFor("drawn", async () => (await inkOf(page)).saturated > 20);
    const box = await page.locator(".drawing canvas").boundingBox();
    await page.mouse.move(box.x + 60, box.y + 28 + 26 + 10);
    await page.waitForSelector(".tip-name");
    await page.mouse.click(box.x + 60, box.y + 28 + 26 + 10);
    await page.waitForSelector(".details h2");
    assert.equal(await page.locator(".details h2").textContent(), MARKUP);
    assert.ok((await page.locator(".args").textContent()).includes(MARKUP));
    await page.keyboard.press("/");
    await page.keyboard.type("onerror");
    await page.waitForSelector(".hits-list tbody tr");
    await page.keyboard.press("Escape");
    await page.keyboard.press("1");
    await page.mouse.move(box.x + 5, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width - 5, box.y + 120, { steps: 3 });
    await page.mouse.up();
    await page.waitForSelector(".aggregate tbody tr");
    await page.screenshot({ path: join(shots, "hostile-light.png") });
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    assert.equal(await page.locator("main img, main script").count(), 0);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("the page keeps to its policy and its budget, and paints at once", async () => {
    const answer = await fetch(base);
    const policy = answer.headers.get("content-security-policy");
    for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "base-uri 'none'", "frame-ancestors 'none'", "worker-src 'self'", "require-trusted-types-for 'script'", "trusted-types worker"])
      assert.ok(policy.includes(part), part);
    const html = await answer.text();
    const assets = [...html.matchAll(/(?:src|href)="\.\/(assets\/[^"]+)"/g)].map((m) => m[1]);
    assert.ok(assets.length >= 3);
    assert.doesNotMatch(html, /<style|<script>|style=|\son\w+=/);
    for (const a of assets) assert.match((await fetch(base + a)).headers.get("cache-control"), /immutable/);
    const { page, check, close } = await openPage(browser, server.url);
    const cdp = await page.context().newCDPSession(page);
    await cdp.send("Network.enable");
    let bytes = 0;
    cdp.on("Network.loadingFinished", (e) => (bytes += e.encodedDataLength));
    let goOn;
    const painted = new Promise((done) => (goOn = done));
    await page.route("**/api/v1/**", async (route) => (await painted, route.continue()));
    await page.goto(base);
    const paint = await waitFor("it paints before anything is answered", () => page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime));
    goOn();
    await page.waitForSelector(".runs a");
    console.log(`# first page: ${bytes} bytes, first paint after ${Math.round(paint)} ms`);
    assert.ok(bytes < 100_000);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("a second visit transfers next to nothing", async () => {
    const { page, check, close } = await openPage(browser, server.url);
    const cdp = await page.context().newCDPSession(page);
    await cdp.send("Network.enable");
    let bytes = 0;
    cdp.on("Network.loadingFinished", (e) => (bytes += e.encodedDataLength));
    const asked = new Set();
    page.on("request", (r) => asked.add(r));
    for (const r of ["requestfinished", "requestfailed"]) page.on(r, (x) => asked.delete(x));
    const idle = () => waitFor("nothing is being asked for but events", () => [...asked].every((r) => /events/.test(r.url())));
    const said = {};
    for (const [name, path, sign] of [["runs", "", ".runs a"], ["timeline", `trace?run=${RUN}&host=${HOST}`, ".drawing canvas"], ["overview", `overview_page?run=${RUN}`, ".tool-page[aria-busy=false] h1"]]) {
      for (const visit of ["first", "second"]) {
        await page.goto("about:blank");
        bytes = 0;
        await page.goto(base + path);
        await page.waitForSelector(sign);
        if (name === "timeline") await waitFor("something is drawn", async () => (await inkOf(page)).saturated > 20);
        await idle();
        said[`${name} ${visit}`] = bytes;
      }
    }
    console.log(`# transferred: ${Object.entries(said).map(([k, v]) => `${k} ${v}`).join(", ")} bytes`);
    for (const [name, n] of Object.entries(said)) if (name.endsWith("second")) assert.ok(n < 5000, `${name} visit: ${n} bytes`);
    assert.deepEqual(await check(), []);
    await close();
  });

  test("behind any prefix everything works", async () => {
    const target = new URL(server.url);
    const proxy = createServer((q, s) => {
      const path = q.url.replace(/^\/tools\/profiles/, "");
      q.pipe(request({ host: target.hostname, port: target.port, path, method: q.method, headers: { ...q.headers, host: target.host } }, (r) => {
        s.writeHead(r.statusCode, r.headers);
        r.pipe(s);
      }));
    });
    await new Promise((done) => proxy.listen(0, "127.0.0.1", done));
    const outside = `http://127.0.0.1:${proxy.address().port}`;
    const { page, check, close } = await openPage(browser, `${outside}/tools/profiles/`);
    await page.goto(`${outside}/tools/profiles/p/local/`);
    await page.click(`.runs a:text-is("${RUN}")`);
    await page.waitForSelector(".drawing canvas");
    await waitFor("drawn", async () => (await inkOf(page)).saturated > 20);
    assert.ok(page.url().startsWith(`${outside}/tools/profiles/p/local/trace?run=`));
    await page.reload();
    await page.waitForSelector(".drawing canvas");
    assert.deepEqual(await check(), []);
    await close();
    proxy.closeAllConnections();
    await new Promise((done) => proxy.close(done));
  });

  test("dark is dark", async () => {
    const e = await target();
    const { page, check, close } = await open(trace(`&t=${e.begin_ps - 6 * e.duration_ps}..${e.begin_ps + 6 * e.duration_ps}&sel=${e.id}`), { colorScheme: "dark" });
    await page.waitForSelector(".details h2");
    assert.match(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), /rgb\(1?\d, 1?\d, \d\d\)/);
    await page.waitForTimeout(500);
    await page.screenshot({ path: join(shots, "timeline-dark.png") });
    assert.deepEqual(await check(), []);
    await close();
  });
});
