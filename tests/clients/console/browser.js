// Chromium and what the tests do in it. The console is that of a gateway without keys (CONSOLE_URL) and of one with keys
// (CONSOLE_KEYED_URL, CONSOLE_KEY, and CONSOLE_ADMIN_KEY of an administrator). With CONSOLE_PICTURES, pictures of the main views are written to that folder.

import assert from "node:assert/strict";
import { after, before } from "node:test";
import { chromium } from "playwright-core";

export const { CONSOLE_URL, CONSOLE_KEYED_URL, CONSOLE_KEY, CONSOLE_ADMIN_KEY, CONSOLE_CHROMIUM, CONSOLE_PICTURES } = process.env;
let browser;

before(async () => {
  // Tests run as root, for whom Chromium has no sandbox. The server is the test's own.
  browser = await chromium.launch({ executablePath: CONSOLE_CHROMIUM, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
});
after(() => browser?.close());

/** A page that remembers all that hostile content could do. */
export async function opened(url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: "light", ...options });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  const seen = { dialogs: [], errors: [], strangers: [], pages: 0 };
  page.on("dialog", (dialog) => {
    seen.dialogs.push(dialog.message());
    void dialog.dismiss();
  });
  page.on("pageerror", (error) => seen.errors.push(String(error)));
  context.on("page", () => seen.pages++);
  // Not those that the policy stops before they are sent.
  context.on("requestfinished", (request) => {
    const address = new URL(request.url());
    if (!["blob:", "data:"].includes(address.protocol) && address.origin !== new URL(url).origin) seen.strangers.push(request.url());
  });
  await page.goto(url);
  return { context, page, seen };
}

export function quiet(seen) {
  assert.deepEqual(seen, { dialogs: [], errors: [], strangers: [], pages: 0 });
}

export async function newSession(page) {
  await page.getByRole("button", { name: "Create session" }).click();
  await page.getByRole("button", { name: "Run", exact: true }).waitFor();
}

export async function start(page, code) {
  await page.locator(".cm-content").fill(code);
  await page.locator(".cm-content").press("Control+Enter");
  return page.locator(".run").first();
}

export async function run(page, code, ended = "Completed") {
  // With the editor come the cells that ran before, of which this one is none.
  await page.locator(".cm-content").waitFor();
  const count = await page.locator(".run").count();
  const made = await start(page, code);
  await page.waitForFunction((count) => document.querySelectorAll(".run").length > count, count);
  await made.locator(".status:not(.going)").waitFor();
  const status = await made.locator(".status").innerText();
  assert.ok(status.startsWith(ended), `${status} instead of ${ended}: ${(await made.innerText()).slice(0, 4000)}`);
  return made;
}

/** Tries a cell instead of running it. */
export async function attempt(page, code) {
  await page.locator(".cm-content").waitFor();
  const count = await page.locator(".run").count();
  await page.locator(".cm-content").fill(code);
  await page.getByRole("button", { name: "Try", exact: true }).click();
  await page.waitForFunction((count) => document.querySelectorAll(".run").length > count, count);
  const made = page.locator(".run").first();
  await made.locator(".status:not(.going)").waitFor();
  return made;
}

export async function picture(page, name) {
  if (!CONSOLE_PICTURES) return;
  // Charts are drawn again for other colors.
  await page.waitForTimeout(500);
  await page.screenshot({ path: `${CONSOLE_PICTURES}/${name}.png` });
}

export const PANELS = ["Playground", "Sessions", "Runs", "Responses", "Artifacts", "Operations"];

/** A picture for the guide. */
export async function pictureOfGuide(page, name) {
  if (!CONSOLE_PICTURES) return;
  const size = page.viewportSize();
  await page.setViewportSize({ width: 1120, height: 560 });
  await picture(page, name);
  await page.setViewportSize(size);
}

/** Asks the API as the page could. */
export function asked(page, method, path, body) {
  const ask = async ([method, path, body]) => {
    const headers = { "content-type": "application/json", "x-cellblock-console": "1" };
    const answer = await fetch(path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    return answer.json();
  };
  return page.evaluate(ask, [method, path, body]);
}

/** Looks at something on a small screen, where nothing may be wider than it. */
export async function small(page, name) {
  const size = page.viewportSize();
  await page.setViewportSize({ width: 375, height: 740 });
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 375, `${name} is wider than 375 px`);
  await picture(page, `${name}-small`);
  await page.setViewportSize(size);
}
