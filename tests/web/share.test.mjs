// The share dialog: a link is made, opens what it was made from, is listed and revoked.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, before, describe, test } from "node:test";
import { Logdir, missing, openPage, shots, startBrowser, startServer } from "./harness.mjs";
import { plainProfile } from "./profile.mjs";

const reason = missing();
const axe = join(dirname(fileURLToPath(import.meta.url)), "../../web/node_modules/axe-core/axe.min.js");
const LONG = { timeout: 30_000 };

describe("the share dialog", { skip: reason || false, timeout: 120_000 }, () => {
  let logdir, server, browser, state;

  before(async () => {
    mkdirSync(shots, { recursive: true });
    logdir = new Logdir();
    logdir.add("a run", "w-0", plainProfile(20));
    state = mkdtempSync(join(tmpdir(), "xprofd-share-"));
    writeFileSync(join(state, "keys"), "a-key-for-tests-0123456789\n");
    mkdirSync(join(state, "records"));
    server = await startServer(logdir.path, "--link-keys", join(state, "keys"), "--state", join(state, "records"));
    browser = await startBrowser();
  });

  after(async () => {
    await browser?.close();
    await server?.stop();
    logdir?.remove();
    if (state) rmSync(state, { recursive: true, force: true });
  });

  test("makes a link that opens the very view, lists it and revokes it", async () => {
    const { page, check, close } = await openPage(browser, server.url);
    await page.goto(`${server.url}/p/local/op_profile?run=a+run&t0=100`);
    await page.getByRole("button", { name: "Share this view" }).click(LONG);
    const dialog = page.getByRole("dialog", { name: "Share" });
    await dialog.getByLabel("Good for").selectOption("60", LONG);
    await dialog.getByRole("button", { name: "Make a link" }).click();
    const field = dialog.getByRole("textbox", { name: "The link" });
    await field.waitFor(LONG);
    const url = await field.inputValue();
    assert.match(url, /\/p\/local\/link-1[A-Za-z0-9_-]+$/);
    await dialog.getByRole("button", { name: "Revoke", exact: true }).waitFor(LONG);
    await dialog.locator("form summary").click();
    await dialog.getByRole("img", { name: /^QR code of/ }).waitFor(LONG);
    await page.evaluate(readFileSync(axe, "utf8"));
    const found = await page.evaluate(() => window.axe.run("dialog", { resultTypes: ["violations"] }));
    assert.deepEqual(found.violations.map((v) => `${v.id}: ${v.help}`), []);
    await page.screenshot({ path: join(shots, "share.png") });

    const second = await openPage(browser, server.url);
    await second.page.goto(url);
    assert.equal(second.page.url(), `${server.url}/p/local/op_profile?run=a+run&t0=100`);
    await second.close();

    await dialog.getByRole("button", { name: "Revoke", exact: true }).click();
    await dialog.getByText("revoked", { exact: false }).waitFor(LONG);
    const answer = await page.request.get(url, { maxRedirects: 0 });
    assert.equal(answer.status(), 410);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached", ...LONG });
    assert.deepEqual(await check(), []);
    await close();
  });

  test("an uploaded file is shared, and the dialog says for how long that is good", async () => {
    const { page, check, close } = await openPage(browser, server.url);
    await page.goto(`${server.url}/p/local/`);
    await page.setInputFiles("#file-to-open", { name: "mine.xplane.pb", mimeType: "application/octet-stream", buffer: Buffer.from(plainProfile(4)) });
    await page.waitForURL(/overview_page\?run=upload-/);
    await page.waitForSelector(".tool-page", LONG);
    await page.getByRole("button", { name: "Share this view" }).click(LONG);
    const dialog = page.getByRole("dialog", { name: "Share" });
    await dialog.getByText("ends with it").waitFor(LONG);
    await dialog.getByRole("button", { name: "Make a link" }).click();
    const url = await dialog.getByRole("textbox", { name: "The link" }).inputValue();
    assert.equal((await page.request.get(url)).url(), page.url());
    await dialog.getByRole("button", { name: "Revoke", exact: true }).click();
    await dialog.getByText("revoked", { exact: false }).waitFor(LONG);
    await page.goBack();
    await page.getByText("Open a file").first().waitFor(LONG);
    await page.goForward();
    await page.waitForSelector(".tool-page", LONG);
    assert.equal(await dialog.count(), 0, "it has gone with the page");
    assert.deepEqual(await check(), []);
    await close();
  });

  test("an admin ends the links of a run", async () => {
    const { page, check, close } = await openPage(browser, server.url);
    const made = await page.request.post(`${server.url}/p/local/api/v1/links`, { data: { run: "a run", view: "op_profile?run=a+run" } });
    const { url } = await made.json();
    await page.goto(`${server.url}/p/local/admin`);
    const ofRun = page.getByRole("region", { name: "Run a run" });
    await ofRun.getByRole("button", { name: "Revoke all" }).click(LONG);
    await ofRun.getByRole("button", { name: "Really revoke all?" }).click();
    await page.getByText("No link works", { exact: false }).waitFor(LONG);
    assert.equal((await page.request.get(`${server.url}/p/local/${url}`, { maxRedirects: 0 })).status(), 410);
    await page.getByLabel("also those that have ended").check();
    await ofRun.getByRole("table").getByText("revoked").first().waitFor(LONG);
    await page.evaluate(readFileSync(axe, "utf8"));
    const found = await page.evaluate(() => window.axe.run("section[aria-label='Share links']", { resultTypes: ["violations"] }));
    assert.deepEqual(found.violations.map((v) => `${v.id}: ${v.help}`), []);
    await page.screenshot({ path: join(shots, "admin-links.png"), fullPage: true });
    assert.deepEqual(await check(), []);
    await close();
  });

  test("says what is missing where the server makes no links", async () => {
    const plain = await startServer(logdir.path);
    const { page, close } = await openPage(browser, plain.url);
    await page.goto(`${plain.url}/p/local/run?run=a+run`);
    await page.getByRole("button", { name: "Share this view" }).click(LONG);
    const dialog = page.getByRole("dialog", { name: "Share" });
    await dialog.getByText("--link-keys", { exact: false }).waitFor(LONG);
    assert.equal(await dialog.getByRole("button", { name: "Copy address of this view" }).count(), 1);
    await close();
    await plain.stop();
  });
});
