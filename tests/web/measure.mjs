// Figures of the timeline in the browser; not a test, as its times are those of the machine:
//   node tests/web/measure.mjs [seconds of panning] [here|there] [LOGDIR RUN]
// here: drawn on the main thread, not in a worker. With LOGDIR RUN: that profile, six steps in.
// A profile with 20,000 rectangles in view is panned and zoomed by keys that are held down. Printed
// are the times between frames, what a frame costs the processor (steadier on a busy machine), and
// the heap before and after, with the buffers behind typed arrays.
import { readFileSync } from "node:fs";
import { Logdir, missing, openPage, startBrowser, startServer, waitFor, inkOf } from "./harness.mjs";
import { plane } from "./profile.mjs";

const seconds = Number(process.argv[2] ?? 60);
const here = process.argv[3] === "here";
const [folder, run] = process.argv.slice(4);
const reason = missing();
if (reason) {
  console.error(reason);
  process.exit(1);
}

const ROWS = 40; // lines that fit the screen
const EACH = 520; // rectangles of one in view
const SCREENS = 200;

/** Events so far apart that none are merged: ROWS × EACH are in view at the measured zoom. */
function profile() {
  const names = Array.from({ length: 300 }, (_, i) => `${["fusion", "copy", "all-reduce", "dot", "infeed"][i % 5]}.${i}`);
  const planes = [];
  for (let d = 0; d < 4; d++) {
    const lines = Array.from({ length: ROWS / 4 }, (_, l) => ({
      name: `line ${l}`, events: Array.from({ length: EACH * SCREENS }, (_, i) => [1 + ((i * 7 + l) % names.length), i * 2_000_000 + l * 1000, 1_200_000]),
    }));
    planes.push(plane(d + 1, `/device:TPU:${d}`, names, lines));
  }
  return Buffer.concat(planes);
}

const percentile = (list, p) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * p))];

const logdir = new Logdir();
if (!folder) logdir.add("big", "w-0", profile());
const server = await startServer(folder ?? logdir.path);
const browser = await startBrowser();
try {
  const { page, close } = await openPage(browser, server.url, { viewport: { width: 1920, height: 1200 } });
  await page.addInitScript(() => { // a picture is asked of the worker when it is done with the one before
    window.pictures = [];
    const { postMessage } = Worker.prototype;
    Worker.prototype.postMessage = function (...args) {
      window.pictures.push(performance.now());
      postMessage.apply(this, args);
    };
  });
  if (here) await page.addInitScript(() => { delete HTMLCanvasElement.prototype.transferControlToOffscreen; });
  const cdp = await page.context().newCDPSession(page);
  /** The largest process of a page: heap, worker, pictures and the browser's own code. */
  const resident = async () => {
    const { processInfo } = await whole.send("SystemInfo.getProcessInfo");
    return Math.max(...processInfo.filter((p) => p.type === "renderer").map((p) => {
      try {
        return Number(/VmRSS:\s*(\d+)/.exec(readFileSync(`/proc/${p.id}/status`, "utf8"))?.[1] ?? 0) / 1024;
      } catch {
        return 0;
      }
    }));
  };
  const heap = async () => {
    await cdp.send("HeapProfiler.collectGarbage");
    const { usedSize, backingStorageSize = 0 } = await cdp.send("Runtime.getHeapUsage");
    return (usedSize + backingStorageSize) / 2 ** 20;
  };
  const whole = await browser.newBrowserCDPSession();
  await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
  /** Processor time in ms: of the page's main thread, of all processes of the browser. */
  const cpu = async () => {
    const { metrics } = await cdp.send("Performance.getMetrics");
    const { processInfo } = await whole.send("SystemInfo.getProcessInfo");
    return { main: metrics.find((m) => m.name === "TaskDuration").value * 1000, all: processInfo.reduce((a, p) => a + p.cpuTime * 1000, 0) };
  };
  const span = EACH * 2_000_000;
  const t0 = span * (SCREENS / 2);
  const began = Date.now();
  const address = `${server.url}/p/local/trace?${folder ? `run=${encodeURIComponent(run)}` : `run=big&host=w-0&t=${t0}..${t0 + span}`}`;
  await page.goto(address);
  await page.waitForSelector(".drawing canvas");
  await waitFor("something is drawn", async () => (await inkOf(page)).saturated > 1000, 120_000);
  console.log(`first picture, cold, after ${Date.now() - began} ms`);
  await waitFor("the profile is loaded", async () => (await page.locator(".loading-banner").count()) === 0, 240_000);
  await page.goto("about:blank");
  const again = Date.now();
  await page.goto(address);
  await page.waitForSelector(".drawing canvas");
  await waitFor("something is drawn", async () => (await inkOf(page)).saturated > 1000, 120_000);
  console.log(`once it is loaded: after ${Date.now() - again} ms`);
  const shown = await page.locator(".status").innerText();
  console.log(`in view: ${shown.replace(/\s+/g, " ")}`);
  await page.evaluate(() => {
    window.frames = [];
    let last = performance.now();
    const tick = (now) => {
      window.frames.push(now - last);
      last = now;
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
  await page.focus(".drawing canvas");
  for (let i = 0; folder && i < 6; i++) await page.keyboard.press("w");
  const before = await heap();
  const small = await resident();
  await page.evaluate(() => (window.pictures.length = 0));
  const spent = await cpu();
  const end = Date.now() + seconds * 1000;
  let most = before;
  const keys = ["d", "a", "d", "s", "w", "a"];
  for (let i = 0; Date.now() < end; i++) {
    await page.keyboard.down(keys[i % keys.length]);
    await page.waitForTimeout(Math.min(1500, Math.max(0, end - Date.now())));
    await page.keyboard.up(keys[i % keys.length]);
    if (i % 5 === 4) most = Math.max(most, await heap());
  }
  const frames = await page.evaluate(() => window.frames);
  const now = await cpu();
  const line = (what, list) => console.log(`${what}: p50 ${percentile(list, 0.5).toFixed(1)} ms, p95 ${percentile(list, 0.95).toFixed(1)} ms, p99 ${percentile(list, 0.99).toFixed(1)} ms of ${list.length}`);
  line("between frames", frames);
  const pictures = await page.evaluate(() => window.pictures.map((t, i, all) => t - (all[i - 1] ?? t)).slice(1));
  if (pictures.length) line("between the worker's pictures", pictures);
  console.log(`processor time of a frame: ${((now.main - spent.main) / frames.length).toFixed(1)} ms on the main thread, ${((now.all - spent.all) / frames.length).toFixed(1)} ms in all processes`);
  console.log(`heap: ${before.toFixed(1)} MiB before, ${(await heap()).toFixed(1)} MiB after ${seconds} s, ${most.toFixed(1)} MiB at most; the page's process ${small.toFixed(0)} MiB before, ${(await resident()).toFixed(0)} MiB after`);
  await close();
} finally {
  await browser.close();
  await server.stop();
  logdir.remove();
}
