// Starts the server and a browser, and watches what a page must never do.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const { chromium } = createRequire(join(root, "web/package.json"))("playwright-core");

export const binary = process.env.XPROFD ?? join(root, "build/release/xprofd");
export const shots = join(root, "build/screenshots");
const shared = process.env.SHARED_DIR ?? join(root, "../shared");
const chrome = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** "" when the tests can run, else the reason why not. */
export function missing() {
  if (!existsSync(binary)) return `no server to test: ${binary} is not built`;
  if (!existsSync(chrome)) return `no browser: ${chrome} is not installed`;
  return "";
}

export class Logdir {
  constructor() {
    this.path = mkdtempSync(join(tmpdir(), "xprofd-web-"));
    mkdirSync(join(this.path, "plugins/profile"), { recursive: true });
  }

  add(run, host, bytes) {
    const folder = join(this.path, "plugins/profile", run);
    mkdirSync(folder, { recursive: true });
    if (host) writeFileSync(join(folder, `${host}.xplane.pb`), bytes);
  }

  remove() {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** Bytes of a real profile, or null where the test material is not there. */
export function realProfile(run, host) {
  const file = join(shared, "data/profiles", run, `${host}.xplane.pb.gz`);
  return existsSync(file) ? gunzipSync(readFileSync(file)) : null;
}

export async function startServer(logdir, ...flags) {
  // What is looked at by and by would change pages while they are looked at.
  const still = flags.includes("--figures-limit") ? [] : ["--figures-limit", "0"];
  const child = spawn(binary, ["--logdir", logdir, "--port", "0", ...still, ...flags], { stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  const url = await new Promise((done, failed) => {
    const timer = setTimeout(() => failed(new Error(`no address within a minute:\n${log}`)), 60_000);
    const look = (chunk) => {
      log += chunk;
      const found = /listening on (http:\/\/\S+?)\/?\s/.exec(log);
      if (found) done((clearTimeout(timer), found[1]));
    };
    child.stdout.on("data", look);
    child.stderr.on("data", look);
    child.on("exit", (code) => failed(new Error(`ended with ${code}:\n${log}`)));
  });
  const stop = () => new Promise((done) => (child.exitCode === null ? (child.once("exit", done), child.kill("SIGTERM")) : done()));
  return { url, stop };
}

export function startBrowser() {
  return chromium.launch({
    executablePath: chrome,
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync",
      "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"], // there is no other host
  });
}

/** A page of its own, with a list of everything that must not happen on it. */
export async function openPage(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1400, height: 840 }, ...options });
  context.setDefaultTimeout(40_000); // of a busy machine; what works takes a fraction
  const page = await context.newPage();
  const bad = [];
  page.on("console", (m) => ["error", "warning"].includes(m.type()) && bad.push(`console: ${m.text()}`));
  page.on("pageerror", (e) => bad.push(`exception: ${e.stack}`));
  page.on("dialog", (d) => (bad.push(`dialog: ${d.message()}`), d.dismiss()));
  page.on("request", (r) => /^(data|blob):/.test(r.url()) || r.url().startsWith(url) || bad.push(`foreign: ${r.url()}`));
  await page.addInitScript(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (e) => window.violations.push(`${e.violatedDirective} ${e.blockedURI}`));
  });
  const check = async (allowed = /^$/) => {
    const violations = await page.evaluate(() => window.violations);
    return [...bad, ...violations.map((v) => `policy: ${v}`)].filter((text) => !allowed.test(text));
  };
  return { page, check, close: () => context.close() };
}

export async function api(url, what, params) {
  const query = new URLSearchParams(params).toString();
  const answer = await fetch(`${url}/p/local/api/v1/${what}?${query}`);
  return answer.json();
}

/** What is on the canvas: how many pixels are no background, how many colours there are. */
export function inkOf(page) {
  return page.evaluate(() => {
    const canvas = document.querySelector(".drawing canvas");
    const { width, height } = canvas;
    const top = Math.round(28 * devicePixelRatio);
    const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const data = copy.getImageData(0, top, width, Math.max(1, height - top)).data;
    const counts = new Map();
    for (let i = 0; i < data.length; i += 4) {
      const key = (data[i] << 16) | (data[i + 1] << 8) | data[i + 2];
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    let saturated = 0;
    for (const [key, n] of counts) {
      const rgb = [key >> 16, (key >> 8) & 255, key & 255];
      if (Math.max(...rgb) - Math.min(...rgb) > 40) saturated += n;
    }
    return { colours: counts.size, saturated };
  });
}

/** The window in the address, in picoseconds. */
export function windowOf(page) {
  const t = new URL(page.url()).searchParams.get("t");
  return t && t.split("..").map(Number);
}

export async function waitFor(what, fn, ms = 40_000) {
  const end = Date.now() + ms;
  for (;;) {
    const got = await fn();
    if (got) return got;
    if (Date.now() > end) throw new Error(`did not come true within ${ms} ms: ${what}`);
    await new Promise((done) => setTimeout(done, 40));
  }
}
