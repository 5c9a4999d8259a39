// The main paths in Firefox and WebKit, each with its own protocol; Chromium has them all.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { noFirefox, noWebkit, startFirefox, startWebkit } from "./engines.mjs";
import { binary, Logdir, startServer, waitFor } from "./harness.mjs";
import { MARKUP, plainProfile } from "./profile.mjs";

const PATIENCE = 40_000;
const unbuilt = existsSync(binary) ? "" : `no server to test: ${binary} is not built`;

for (const [name, missing, start] of [["Firefox", noFirefox, startFirefox], ["WebKit", noWebkit, startWebkit]]) {
  const reason = unbuilt || missing();
  if (reason) console.log(`# ${reason}`);
  describe(`the main paths in ${name}`, { skip: reason || false, timeout: 400_000 }, () => {
    let logdir, server, browser, base;

    before(async () => {
      logdir = new Logdir();
      logdir.add("first", "w-0", plainProfile(40));
      logdir.add("second", "w-0", plainProfile(60));
      server = await startServer(logdir.path);
      base = `${server.url}/p/local/`;
      browser = await start();
    });
    after(async () => {
      await browser?.stop();
      await server?.stop();
      logdir?.remove();
    });

    const until = (what, expression) => waitFor(`${name}: ${what}`, () => browser.eval(expression), PATIENCE);
    const text = (selector) => browser.eval(`document.querySelector(${JSON.stringify(selector)})?.innerText ?? ""`);
    const there = (selector) => until(`${selector} is there`, `document.querySelector(${JSON.stringify(selector)}) !== null`);
    const centre = (selector) => browser.eval(`(() => { const r = document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()`);
    const click = async (selector) => {
      await there(selector);
      await browser.pointer(await centre(selector));
    };
    const param = (k) => `new URLSearchParams(location.search).get(${JSON.stringify(k)})`;
    /** Pixels of a strong colour on the timeline. */
    const ink = `(() => { const c = document.querySelector(".drawing canvas"); if (!c || !c.width) return 0;
      const x = Object.assign(document.createElement("canvas"), { width: c.width, height: c.height }).getContext("2d"); x.drawImage(c, 0, 0); const d = x.getImageData(0, 0, c.width, c.height).data;
      let n = 0; for (let i = 0; i < d.length; i += 4) if (Math.max(d[i], d[i + 1], d[i + 2]) - Math.min(d[i], d[i + 1], d[i + 2]) > 40) n++; return n; })()`;

    test("runs, timeline, keys, events, search, tools, palette and compare work", async () => {
      await browser.open(base);
      await there(".runs tbody th a");
      await browser.eval(`(window.failures = [], addEventListener("error", (e) => failures.push(e.message)), document.addEventListener("securitypolicyviolation", (e) => failures.push(e.violatedDirective)), 1)`);
      await click(".runs tbody th a[href*='run=second']");
      await until("the timeline is drawn", `${ink} > 500`);

      await browser.keys("w");
      await until("W zooms", `/^\\d+\\.\\.\\d+$/.test(${param("t")} ?? "")`);
      await browser.keys("0");
      await until("0 shows everything", `${param("t")} === null`);
      await browser.keys(".");
      await until("an event is chosen", `document.querySelector(".dock")?.innerText.includes(" ns") ?? false`);
      await browser.keys("/", ..."all-reduce");
      await until("hits are counted", `document.querySelector(".search output")?.innerText === "120"`);
      await browser.keys("Enter");
      await until("a hit is chosen", `/all-reduce/.test(document.querySelector(".dock .hits-list")?.innerText ?? "")`);
      await browser.keys("Escape", "Escape");

      const [x, y] = await centre(".drawing canvas");
      await browser.keys("1");
      await browser.pointer([x - 100, y - 150], [x, y - 100], [x + 150, y - 80]);
      await until("an area is summed up", `(document.querySelectorAll(".aggregate tbody tr").length > 0)`);
      await click(".aggregate .button");
      await until("the time goes along", `/\\.\\./.test(${param("range")} ?? "")`);

      await browser.keys("g");
      await there(".go-hint");
      await browser.keys("o");
      await there(".tool-page[aria-busy=false] h1");
      await there(".range-chip");
      await browser.keys("Control+k");
      await there("dialog.palette");
      await browser.keys(..."roofl");
      await until("the palette finds the roofline", `/Roofline/.test(document.querySelector("dialog.palette li[aria-selected=true]")?.innerText ?? "")`);
      await browser.keys("Enter");
      await until("the roofline is open", `location.pathname.endsWith("/roofline_model") && document.querySelector(".tool-page[aria-busy=false] h1") !== null`);
      assert.equal(await browser.eval(`document.querySelectorAll(".problem").length`), 0, await text(".problem"));
      assert.deepEqual(await browser.eval("window.failures"), []);

      // A file of one's own: chosen, sent, opened, removed.
      await browser.open(base);
      await there(".runs tbody th a");
      await browser.eval(`(() => { const d = new DataTransfer(), bytes = Uint8Array.from(atob("${Buffer.from(plainProfile(4)).toString("base64")}"), (c) => c.charCodeAt(0));
        d.items.add(new File([bytes], "mine.xplane.pb")); const input = document.querySelector("#file-to-open"); input.files = d.files; input.dispatchEvent(new Event("change", { bubbles: true })); return 1; })()`);
      await until("the upload is open", `/^upload-/.test(${param("run")} ?? "") && document.querySelector(".tool-page[aria-busy=false] h1") !== null`);
      await click(".bar .popover button[title^='An uploaded file']");
      await click(".upload-about button");
      await until("it is gone", `document.querySelector(".runs tbody th a") !== null && document.querySelector(".kept-uploads") === null`);

      await browser.open(`${base}compare?a=first&b=second`);
      await there(".tool-page .tiles");
      assert.match(await text(".tool-page"), /Step time/);
      await browser.open(`${base}trace?run=first&host=w-0&q=${encodeURIComponent(MARKUP)}`);
      await until("nothing is called so", `document.querySelector(".search output")?.innerText === "0"`);
      assert.equal(await browser.eval("window.pwned === undefined && document.images.length === 0"), true);
      const foreign = await browser.eval(`performance.getEntriesByType("resource").map((e) => e.name).filter((u) => !u.startsWith(location.origin))`);
      assert.deepEqual(foreign, []);
      assert.deepEqual(browser.errors, []);
    });
  });
}
