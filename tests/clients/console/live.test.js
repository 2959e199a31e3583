// Many live sessions, each with a kernel: they are listed, and one of them is used as if it were alone.

import assert from "node:assert/strict";
import { test } from "node:test";
import { CONSOLE_URL, newSession, opened, quiet, run } from "./browser.js";

const COUNT = Number(process.env.CONSOLE_LIVE ?? 100);
/** Sessions that are made at the same time. */
const AT_ONCE = 4;

test(`${COUNT} live sessions are listed while one is used`, async () => {
  const { context, page, seen } = await opened(`${CONSOLE_URL}/console`);
  await newSession(page);
  let begun = performance.now();
  const made = await page.evaluate(
    async ([count, atOnce]) => {
      const headers = { "content-type": "application/json", "x-cellblock-console": "1" };
      const post = async (path, body) => (await fetch(path, { method: "POST", headers, body: JSON.stringify(body) })).json();
      const ids = [];
      const make = async () => {
        while (ids.length < count) {
          const place = ids.push(null) - 1;
          const { id } = await post("/v1/sessions", {});
          const { outcome } = await post(`/v1/sessions/${id}/cells`, { code: `x = ${place}` });
          ids[place] = outcome === "completed" ? id : outcome;
        }
      };
      await Promise.all(Array.from({ length: atOnce }, make));
      return ids;
    },
    [COUNT, AT_ONCE],
  );
  assert.ok(made.every((id) => /^sess/.test(id)), String(made));
  console.log(`${COUNT} sessions with a kernel were made in ${Math.round(performance.now() - begun)} ms`);
  await page.evaluate(() => {
    globalThis.longest = 0;
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) globalThis.longest = Math.max(globalThis.longest, duration);
    }).observe({ type: "longtask" });
  });
  begun = performance.now();
  await page.getByRole("link", { name: "Sessions" }).click();
  const rows = page.locator("table.sessions tbody tr");
  await rows.nth(COUNT).waitFor();
  assert.equal(await rows.count(), COUNT + 1);
  console.log(`they are listed after ${Math.round(performance.now() - begun)} ms`);
  await page.goBack();
  begun = performance.now();
  await (await run(page, "print('still', 'here')")).locator(".stdout", { hasText: "still here" }).waitFor();
  console.log(`a cell beside them is shown after ${Math.round(performance.now() - begun)} ms; the longest task of the page took ${Math.round(await page.evaluate(() => globalThis.longest))} ms`);
  // One in the middle of the list is opened and still has its variables.
  await page.getByRole("link", { name: "Sessions" }).click();
  const middle = made[Math.floor(COUNT / 2)];
  await page.locator(`a.button[href="#/playground/${middle}"]`).click();
  await (await run(page, "x")).locator("pre.value", { hasText: String(Math.floor(COUNT / 2)) }).waitFor();
  await page.evaluate((ids) => Promise.all(ids.map((id) => fetch(`/v1/sessions/${id}`, { method: "DELETE", headers: { "x-cellblock-console": "1" } }))), made);
  await page.getByRole("link", { name: "Sessions" }).click();
  await page.waitForFunction(() => document.querySelectorAll("table.sessions tbody tr").length === 1);
  quiet(seen);
  await context.close();
});
