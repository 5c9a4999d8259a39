// Browsers other than Chromium, by the protocols that they speak themselves: Firefox by WebDriver
// BiDi, WebKit by its WebDriver. Both get the same few verbs.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const firefox = process.env.FIREFOX ?? "/usr/bin/firefox-esr";
const webkitDriver = process.env.WEBKIT_DRIVER ?? "/usr/bin/WebKitWebDriver";
const miniBrowsers = ["/usr/lib/x86_64-linux-gnu/webkit2gtk-4.1/MiniBrowser", "/usr/lib/aarch64-linux-gnu/webkit2gtk-4.1/MiniBrowser"];
const miniBrowser = process.env.WEBKIT_BROWSER ?? miniBrowsers.find((p) => existsSync(p));
const xvfb = "/usr/bin/Xvfb";

const PATIENCE = 120_000;

function freePort() {
  return new Promise((done, failed) => {
    const s = createServer();
    s.once("error", failed);
    s.listen(0, "127.0.0.1", () => {
      const { port } = s.address();
      s.close(() => done(port));
    });
  });
}

/** A child that is ended with us; `ready` is matched in what it prints. */
function start(command, args, env, ready, fd = null) {
  const stdio = ["ignore", "pipe", "pipe", ...(fd === null ? [] : ["pipe"])];
  const child = spawn(command, args, { stdio, env: { ...process.env, ...env } });
  let log = "";
  const told = new Promise((done, failed) => {
    const timer = setTimeout(() => failed(new Error(`${command}: not ready within two minutes:\n${log}`)), PATIENCE);
    const look = (chunk) => {
      log += chunk;
      const m = ready.exec(log);
      if (m) done((clearTimeout(timer), m));
    };
    for (const stream of child.stdio.slice(1)) stream.on("data", look);
    child.on("error", (e) => (clearTimeout(timer), failed(e)));
    child.on("exit", (code) => (clearTimeout(timer), failed(new Error(`${command} ended with ${code}:\n${log}`))));
  });
  const stop = () => new Promise((done) => {
    if (child.exitCode !== null || child.signalCode !== null) return done();
    const hard = setTimeout(() => child.kill("SIGKILL"), 5000);
    child.once("exit", () => (clearTimeout(hard), done()));
    child.kill("SIGTERM");
  });
  return { told, stop };
}

const CODES = { Enter: "\uE007", Escape: "\uE00C", Control: "\uE009", Shift: "\uE008", ArrowDown: "\uE015", Tab: "\uE004" };
const keyOf = (k) => CODES[k] ?? k;

/** Presses keys one after the other; "Control+k" holds the first. */
function keyActions(keys) {
  const actions = keys.flatMap((k) => {
    const parts = k.length > 1 && k.includes("+") ? k.split("+") : [k];
    return [...parts.map((p) => ({ type: "keyDown", value: keyOf(p) })), ...parts.reverse().map((p) => ({ type: "keyUp", value: keyOf(p) }))];
  });
  return [{ type: "key", id: "keys", actions }];
}

/** With several places the pointer is dragged over them. */
function pointerActions(places) {
  const move = ([x, y]) => ({ type: "pointerMove", x: Math.round(x), y: Math.round(y), duration: 0, origin: "viewport" });
  const [first, ...rest] = places;
  return [{
    type: "pointer", id: "mouse", parameters: { pointerType: "mouse" },
    actions: [move(first), { type: "pointerDown", button: 0 }, ...rest.map(move), { type: "pointerUp", button: 0 }],
  }];
}

/** Firefox: "" when it can be tested, else why not. */
export function noFirefox() {
  if (!existsSync(firefox)) return `Firefox was not tested: ${firefox} is not installed`;
  return typeof WebSocket === "undefined" ? "Firefox was not tested: this Node has no WebSocket (--experimental-websocket)" : "";
}

export async function startFirefox() {
  const profile = mkdtempSync(join(tmpdir(), "xprofd-firefox-"));
  writeFileSync(join(profile, "user.js"), [
    ["app.update.enabled", false], ["browser.shell.checkDefaultBrowser", false], ["datareporting.policy.dataSubmissionEnabled", false],
    ["toolkit.telemetry.enabled", false], ["browser.startup.page", 0], ["network.captive-portal-service.enabled", false],
    ["browser.safebrowsing.malware.enabled", false], ["extensions.update.enabled", false], ["network.connectivity-service.enabled", false],
    ["browser.aboutwelcome.enabled", false], ["services.settings.server", "http://127.0.0.1:9/none"],
  ].map(([k, v]) => `user_pref(${JSON.stringify(k)}, ${JSON.stringify(v)});\n`).join(""));
  const browser = start(firefox, ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0", "--width", "1400", "--height", "840", "about:blank"],
    { MOZ_HEADLESS: "1", HOME: profile }, /WebDriver BiDi listening on (ws:\/\/\S+)/);
  const stop = async () => {
    await browser.stop();
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    const [, address] = await browser.told;
    const socket = new WebSocket(`${address}/session`);
    await new Promise((done, failed) => ((socket.onopen = done), (socket.onerror = () => failed(new Error("no BiDi session")))));
    const waiting = new Map();
    const errors = [];
    let last = 0;
    socket.onmessage = ({ data }) => {
      const m = JSON.parse(data);
      if (m.method === "log.entryAdded" && m.params.level === "error") errors.push(m.params.text);
      waiting.get(m.id)?.(m);
      waiting.delete(m.id);
    };
    const send = async (method, params) => {
      const id = ++last;
      const m = await new Promise((done, failed) => {
        const timer = setTimeout(() => failed(new Error(`${method}: no answer within two minutes`)), PATIENCE);
        waiting.set(id, (got) => (clearTimeout(timer), done(got)));
        socket.send(JSON.stringify({ id, method, params }));
      });
      if (m.type === "error") throw new Error(`${method}: ${m.error}: ${m.message}`);
      return m.result;
    };
    await send("session.new", { capabilities: {} });
    await send("session.subscribe", { events: ["log.entryAdded"] });
    const { contexts } = await send("browsingContext.getTree", {});
    const context = contexts[0].context;
    await send("browsingContext.setViewport", { context, viewport: { width: 1400, height: 840 } });
    const act = (actions) => send("input.performActions", { context, actions });
    return {
      name: "Firefox", errors, stop,
      open: (url) => send("browsingContext.navigate", { context, url, wait: "complete" }),
      eval: async (expression) => {
        const got = await send("script.evaluate", { expression: `JSON.stringify(${expression})`, target: { context }, awaitPromise: true });
        if (got.type === "exception") throw new Error(`${expression}: ${got.exceptionDetails.text}`);
        return got.result.value === undefined ? undefined : JSON.parse(got.result.value);
      },
      keys: (...keys) => act(keyActions(keys)),
      pointer: (...places) => act(pointerActions(places)),
    };
  } catch (e) {
    await stop();
    throw e;
  }
}

/** WebKit: "" when it can be tested, else why not. */
export function noWebkit() {
  if (!existsSync(webkitDriver)) return `WebKit was not tested: ${webkitDriver} is not installed`;
  if (!miniBrowser) return "WebKit was not tested: MiniBrowser is not installed";
  return process.env.DISPLAY || existsSync(xvfb) ? "" : `WebKit was not tested: there is no display, and ${xvfb} is not installed`;
}

export async function startWebkit() {
  const parts = [];
  const stop = async () => {
    for (const p of parts.reverse()) await p.stop();
  };
  try {
    let display = process.env.DISPLAY;
    if (!display) {
      const x = start(xvfb, ["-displayfd", "3", "-screen", "0", "1500x1000x24", "-nolisten", "tcp"], {}, /^(\d+)\s/m, 3);
      parts.push(x);
      display = `:${(await x.told)[1]}`;
    }
    const home = mkdtempSync(join(tmpdir(), "xprofd-webkit-"));
    parts.push({ stop: () => rmSync(home, { recursive: true, force: true, maxRetries: 5 }) });
    const port = await freePort();
    const env = {
      DISPLAY: display, HOME: home, XDG_RUNTIME_DIR: home, GDK_BACKEND: "x11", LIBGL_ALWAYS_SOFTWARE: "1", WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: "1",
      WEBKIT_DISABLE_COMPOSITING_MODE: "1", NO_AT_BRIDGE: "1", GIO_USE_VFS: "local", GSETTINGS_BACKEND: "memory",
    };
    const driver = start(webkitDriver, [`--port=${port}`], env, /never printed/);
    driver.told.catch(() => undefined);
    parts.push(driver);
    const base = `http://127.0.0.1:${port}`;
    const send = async (method, path, body) => {
      const answer = await fetch(base + path, {
        method, ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }), signal: AbortSignal.timeout(PATIENCE),
      });
      const { value } = await answer.json();
      if (!answer.ok) throw new Error(`${path}: ${value.error}: ${value.message}`);
      return value;
    };
    for (const end = Date.now() + PATIENCE; ; ) {
      try {
        await send("GET", "/status");
        break;
      } catch (e) {
        if (Date.now() > end) throw e;
        await new Promise((done) => setTimeout(done, 50));
      }
    }
    const { sessionId } = await send("POST", "/session", {
      capabilities: { alwaysMatch: { "webkitgtk:browserOptions": { binary: miniBrowser, args: ["--automation"] } } },
    });
    const at = `/session/${sessionId}`;
    parts.push({ stop: () => send("DELETE", at).catch(() => undefined) });
    await send("POST", `${at}/window/rect`, { x: 0, y: 0, width: 1400, height: 940 });
    const act = (actions) => send("POST", `${at}/actions`, { actions });
    return {
      name: "WebKit", errors: [], stop,
      open: (url) => send("POST", `${at}/url`, { url }),
      eval: async (expression) => {
        const got = await send("POST", `${at}/execute/async`, {
          script: `const done = arguments[0]; Promise.resolve(${expression}).then((v) => done(JSON.stringify(v)), (e) => done(JSON.stringify({ failed: String(e) })));`, args: [],
        });
        const value = got === null || got === undefined ? undefined : JSON.parse(got);
        if (value?.failed) throw new Error(`${expression}: ${value.failed}`);
        return value;
      },
      keys: (...keys) => act(keyActions(keys)),
      pointer: (...places) => act(pointerActions(places)),
    };
  } catch (e) {
    await stop();
    throw e;
  }
}
