// XProf's own pages over this server: every page of a run's tools, in a browser without a network, must show what the
// same page shows over XProf (stock_pages.json; charts that come from elsewhere stay empty in both).
//
// XPROF_STATIC names the folder xprof/static of an installed xprof 2.24.2; .ci/install puts one into .venv.
// XPROF_RECORD=URL of a running XProf on the sample profiles writes stock_pages.json anew.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Logdir, missing, realProfile, startBrowser, startServer, waitFor } from "./harness.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const kept = join(here, "stock_pages.json");
const record = process.env.XPROF_RECORD?.replace(/\/$/, "");
const RUNS = { synth_tpu_train: "tpu-worker-0", synth_gpu_train: "gpu-0", synth_inference: "serving-0" };
const TRACE = /^trace_viewer/; // drawn, not written
const NO_CHARTS = /google is not defined|reading 'visualization'|ChartError/;

function staticFolder() {
  const venv = join(here, "../../.venv");
  const installed = existsSync(join(venv, "lib")) ? readdirSync(join(venv, "lib")) : [];
  const places = [process.env.XPROF_STATIC, join(venv, "xprof-static/xprof/static"),
    ...installed.map((python) => join(venv, "lib", python, "site-packages/xprof/static"))];
  return places.find((p) => p && existsSync(join(p, "bundle.js")));
}

const folder = staticFolder();
const profiles = Object.entries(RUNS).map(([run, host]) => [run, host, realProfile(run, host)]);
const reason = missing() ||
  (!folder && "no pages of XProf: set XPROF_STATIC, or XPROF_STATIC_INSTALL=1 .ci/install") ||
  (profiles.some(([, , bytes]) => !bytes) && "the sample profiles are not there: set SHARED_DIR");
if (reason) console.log(`# the pages of XProf are not tested: ${reason}`);

describe("the pages of XProf", { skip: reason || false, timeout: 400_000 }, () => {
  let logdir, server, browser, url, expected;

  before(async () => {
    expected = record ? {} : JSON.parse(readFileSync(kept, "utf8"));
    browser = await startBrowser();
    if (record) return void (url = record);
    logdir = new Logdir();
    for (const [run, host, bytes] of profiles) logdir.add(run, host, bytes);
    server = await startServer(logdir.path, "--ui", `stock=${folder}`);
    url = server.url;
  });

  after(async () => {
    await browser?.close();
    await server?.stop();
    logdir?.remove();
  });

  const plugin = (what) => `${url}/data/plugin/profile/${what}`;

  /**
   * Opens a page and waits until it rests. What it said, what it asked, what went wrong.
   *
   * These pages throw where their charts' library is missing, and what an exception interrupts is drawn by the next
   * turn of the page or by none: on a slow machine a page may rest for half a second with a heading too few. So a page
   * that says something else than `want` gets some more time; `settled` loads it again before it is called wrong.
   */
  async function visit(page, run, tool, want) {
    const asked = [];
    const errors = [];
    const pending = new Set();
    const ask = (r) => r.url().startsWith(url) && pending.add(r);
    const done = (r) => pending.delete(r);
    const hear = (r) => asked.push([r.status(), new URL(r.url()).pathname.split("/").pop(), new URL(r.url()).searchParams.get("tag")]);
    const fail = (e) => NO_CHARTS.test(e.message) || errors.push(e.message);
    const listeners = { request: ask, requestfinished: done, requestfailed: done, response: hear, pageerror: fail };
    for (const [name, fn] of Object.entries(listeners)) page.on(name, fn);
    await page.goto(plugin(`?${new URLSearchParams({ run, tag: tool, host: RUNS[run] })}`));
    const text = () => page.evaluate(() => document.querySelector("mat-sidenav-content")?.innerText ?? "");
    let last = null;
    let still = 0;
    const answered = () => asked.some(([, what, tag]) => what === "data" && tag);
    await waitFor(`${run} ${tool} comes to rest`, async () => {
      const now = answered() && pending.size === 0 ? await text() : null;
      still = now !== null && now === last ? still + 1 : 0;
      last = now;
      return still >= 12; // about half a second
    }, 25_000);
    for (let more = 0; want && more < 60 && differences("", tidy(last), want).length > 0; more++) {
      await page.waitForTimeout(50);
      last = await text();
    }
    const critical = await page.locator(".callout.is-critical, mat-snack-bar-container").allInnerTexts();
    for (const [name, fn] of Object.entries(listeners)) page.off(name, fn);
    return { text: tidy(last), asked, errors, critical };
  }

  async function settled(page, run, tool, want) {
    let got;
    for (let tries = 0; tries < 3; tries++) {
      got = await visit(page, run, tool, want);
      if (!want || differences("", got.text, want).length === 0) break;
    }
    return got;
  }

  const tidy = (text) => text.split("\n").map((line) => line.replace(/\s+/g, " ").trim()).filter(Boolean);

  for (const run of Object.keys(RUNS)) {
    test(`every tool of ${run} has its page`, async () => {
      const context = await browser.newContext({ viewport: { width: 1400, height: 900 } });
      const page = await context.newPage();
      await page.route((u) => !u.href.startsWith(url), (route) => route.abort());
      const tools = await (await fetch(plugin(`run_tools?run=${run}`))).json();
      assert.ok(tools.length > 5, `tools: ${tools}`);
      const wrong = [];
      for (const tool of tools) {
        const key = `${run} ${tool}`;
        const got = await settled(page, run, tool, TRACE.test(tool) ? undefined : expected[key]);
        if (record) {
          expected[key] = TRACE.test(tool) ? [] : got.text;
          continue;
        }
        for (const [status, what, tag] of got.asked)
          if (status >= 400) wrong.push(`${key}: ${what} ${tag ?? ""} was answered with ${status}`);
        for (const e of got.errors) wrong.push(`${key}: exception ${e}`);
        for (const e of got.critical) wrong.push(`${key}: the page says: ${e}`);
        if (!expected[key]) wrong.push(`${key}: XProf has no such page`);
        else if (!TRACE.test(tool)) wrong.push(...differences(key, got.text, expected[key]));
      }
      await context.close();
      if (record) writeFileSync(kept, `${JSON.stringify(expected, null, 1)}\n`);
      assert.deepEqual(wrong, []);
    });
  }

  function differences(key, got, want) {
    const at = want.findIndex((line, i) => line !== got[i]);
    if (at < 0 && got.length === want.length) return [];
    const i = at < 0 ? want.length : at;
    return [`${key}: line ${i + 1} is "${got[i]}", over XProf "${want[i]}" (${got.length} and ${want.length} lines)`];
  }
});
