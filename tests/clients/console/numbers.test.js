// The numbers of the console, measured and printed. Nothing here is a limit: the machine decides.

import { test } from "node:test";
import { CONSOLE_URL, newSession, opened, run } from "./browser.js";

const TIMES = 7;

function told(what, all) {
  const sorted = all.map((one) => Math.round(one * 10) / 10).sort((a, b) => a - b);
  console.log(`${what}: median ${sorted[Math.floor(sorted.length / 2)]} ms, ${sorted[0]} to ${sorted.at(-1)} ms, n = ${sorted.length}`);
}

test("first paint", async () => {
  const all = [];
  for (let time = 0; time < TIMES; time++) {
    const { context, page } = await opened(`${CONSOLE_URL}/console`);
    await page.getByRole("button", { name: "Create session" }).waitFor();
    // The entry may come after the page.
    const painted = page.evaluate(
      () =>
        new Promise((done) => {
          new PerformanceObserver((list) => {
            for (const entry of list.getEntriesByName("first-contentful-paint")) done(entry.startTime);
          }).observe({ type: "paint", buffered: true });
        }),
    );
    all.push(await painted);
    await context.close();
  }
  told("first contentful paint, nothing cached", all);
});

test("output of a cell", async () => {
  const { context, page } = await opened(`${CONSOLE_URL}/console`);
  await newSession(page);
  await run(page, "import time");
  // What is printed is the time when it was printed; both clocks are the machine's.
  await page.evaluate(() => {
    globalThis.late = new Map();
    new MutationObserver(() => {
      const now = performance.timeOrigin + performance.now();
      for (const line of document.querySelector(".run .stdout")?.textContent.split("\n") ?? []) {
        if (/^at \d+\.\d+ end$/.test(line) && !globalThis.late.has(line)) globalThis.late.set(line, now - Number(line.split(" ")[1]));
      }
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
  });
  await run(page, "for _ in range(60):\n    print('at', f'{time.time() * 1000:.1f}', 'end', flush=True)\n    time.sleep(0.05)");
  told("from print() in the sandbox to the text in the page", await page.evaluate(() => [...globalThis.late.values()]));
  await context.close();
});

test("pages of a table", async () => {
  const { context, page } = await opened(`${CONSOLE_URL}/console`);
  const first = [];
  const jumps = [];
  for (let time = 0; time < TIMES; time++) {
    await page.goto(`${CONSOLE_URL}/console#/playground`);
    const begun = performance.now();
    await page.goto(`${CONSOLE_URL}/console#/artifacts/${process.env.CONSOLE_TABLE_SHA256}`);
    await page.locator(".table tbody tr").nth(19).waitFor();
    first.push(performance.now() - begun);
    console.log(await page.locator(".pager").innerText());
    jumps.push(
      await page.evaluate(async ([sha256, place]) => {
        const read = async (offset) => (await fetch(`/v1/artifacts/${sha256}/rows?offset=${offset}&limit=20`)).json();
        const { total_rows } = await read(0);
        const begun = performance.now();
        await read(Math.floor((total_rows * place) / 8));
        return performance.now() - begun;
      }, [process.env.CONSOLE_TABLE_SHA256, time]),
    );
  }
  told("the first page of the table is shown", first);
  told("a page elsewhere in the table is read", jumps);
  await context.close();
});
