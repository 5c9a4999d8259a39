// Figures of the pages in the browser; no test, as its times are those of the machine:
//   node tests/web/measure_pages.mjs LOGDIR RUN [times]
// of a profile that is loaded already: when a page paints first and when what one came for is there,
// what that costs the page's main thread (steadier on a busy machine), what is transferred by a first
// and a second visit, the heap; and how long a table of 50,000 rows takes to be sorted and drawn.
// The least of `times` (5) visits, each with an empty cache.
import { api, missing, openPage, startBrowser, startServer, waitFor } from "./harness.mjs";
import { everything, opTable } from "./reports.mjs";

const [logdir, run, times = "5"] = process.argv.slice(2);
const reason = missing() || (run ? "" : "usage: node tests/web/measure_pages.mjs LOGDIR RUN [times]");
if (reason) {
  console.error(reason);
  process.exit(1);
}

const server = await startServer(logdir);
const browser = await startBrowser();
const base = `${server.url}/p/local/`;

async function visit(path, sign, options = {}) {
  const { page, close } = await openPage(browser, server.url);
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Network.enable");
  await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
  let bytes = 0;
  cdp.on("Network.loadingFinished", (e) => (bytes += e.encodedDataLength));
  const go = async () => {
    bytes = 0;
    await page.addInitScript((s) => {
      window.ready = new Promise((done) => {
        const look = () => (document.querySelector(s) ? done(performance.now()) : requestAnimationFrame(look));
        look();
      });
    }, sign);
    await page.goto(base + path);
    const ready = await page.evaluate(() => window.ready);
    await page.waitForLoadState("networkidle");
    const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN);
    return { paint, ready, bytes };
  };
  const first = await go();
  const { metrics } = await cdp.send("Performance.getMetrics");
  first.cpu = metrics.find((m) => m.name === "TaskDuration").value * 1000;
  if (options.second) {
    await page.goto(`${base}captures`); // not a reload, which asks for everything again
    await page.waitForLoadState("networkidle");
    first.again = (await go()).bytes;
  }
  await cdp.send("HeapProfiler.collectGarbage");
  first.heap = (await cdp.send("Runtime.getHeapUsage")).usedSize;
  await close();
  return first;
}

async function sortOf50000() {
  const whole = opTable(50_000);
  const big = { ...whole, columns: whole.columns.slice(0, 7), rows: whole.rows.map((r) => r.slice(0, 7)) };
  const { page, close } = await openPage(browser, server.url);
  await page.route(/\/api\/v1\/report\?/, async (route) => {
    if (/tool=tools/.test(route.request().url())) return route.continue();
    return route.fulfill({ json: { ...everything({ tool: "hlo_stats" }), tables: [big], series: [], tree: null, text: null, notes: [] } });
  });
  await page.goto(`${base}hlo_stats?run=${run}`);
  await page.waitForSelector(".data tbody tr");
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
  const spent = async () => (await cdp.send("Performance.getMetrics")).metrics.find((m) => m.name === "TaskDuration").value * 1000;
  const out = {};
  for (let k = 0; k < 2 * Number(times); k++)
    for (const label of ["Occurrences", "Self time", "HLO op"]) {
      const before = await spent();
      const took = await page.evaluate(async (text) => {
        const button = [...document.querySelectorAll(".sorter")].find((b) => b.textContent.includes(text));
        const t0 = performance.now();
        button.click();
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
        return performance.now() - t0;
      }, label);
      const cpu = (await spent()) - before;
      out[label] ??= { took: [], cpu: [] };
      out[label].took.push(took);
      out[label].cpu.push(cpu);
    }
  await close();
  return out;
}

const least = (list, of) => Math.min(...list.map((x) => x[of]));
const pages = [
  ["run list", "", ".runs tbody tr"], ["overview", `overview_page?run=${run}`, ".tool-page[aria-busy=false] .tile"],
  ["HLO ops", `hlo_stats?run=${run}`, ".data tbody tr"], ["timeline", `trace?run=${run}`, ".status b"],
];
try {
  await waitFor("the profile is loaded", async () => (await api(server.url, "tracks", { run })).loading === false, 240_000);
  await api(server.url, "report", { run, tool: "overview_page" });
  for (const [name, path, sign] of pages) {
    const seen = [];
    for (let k = 0; k < Number(times); k++) seen.push(await visit(path, sign, { second: k === 0 }));
    console.log(`${name}: paints after ${least(seen, "paint").toFixed(0)} ms, is there after ${least(seen, "ready").toFixed(0)} ms, ` +
      `${least(seen, "cpu").toFixed(0)} ms of the main thread; ${(seen[0].bytes / 1000).toFixed(1)} kB, the second time ${(seen[0].again / 1000).toFixed(2)} kB; heap ${(least(seen, "heap") / 2 ** 20).toFixed(1)} MiB`);
  }
  for (const [label, { took, cpu }] of Object.entries(await sortOf50000()))
    console.log(`50,000 rows by ${label}: ${Math.min(...took).toFixed(0)} ms until drawn, first ${took[0].toFixed(0)} ms; main thread ${Math.min(...cpu).toFixed(0)} ms`);
} finally {
  await browser.close();
  await server.stop();
}
