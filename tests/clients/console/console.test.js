// The frame of the console, the playground, and the sign-in.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { test } from "node:test";
import { CONSOLE_KEY, CONSOLE_KEYED_URL, CONSOLE_PICTURES, CONSOLE_URL, PANELS, newSession, opened, picture, quiet, run, start } from "./browser.js";
import { compared } from "./compared.js";

const SHOWN = `import pandas as pd
import matplotlib.pyplot as plt

sales = pd.DataFrame({
    "month": pd.date_range("2024-01-01", periods=30, freq="MS").strftime("%Y-%m"),
    "orders": [420 + 13 * i + 60 * (i % 12 in (10, 11)) for i in range(30)],
})
print(f"\\x1b[32m{sales.orders.sum():,}\\x1b[0m orders")
display(sales)

class Chart:
    def _repr_mimebundle_(self, **kwargs):
        spec = {
            "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
            "height": 180,
            "data": {"values": sales.to_dict("records")},
            "mark": {"type": "bar", "tooltip": True},
            "encoding": {
                "x": {"field": "month", "type": "ordinal", "axis": {"labelAngle": -45}},
                "y": {"field": "orders", "type": "quantitative"},
            },
        }
        return {"application/vnd.vegalite.v5+json": spec, "text/plain": "a chart"}

display(Chart())
figure, axes = plt.subplots(figsize=(5, 2))
axes.plot(sales.orders)
plt.show()`;

test("a cell runs, and its text, table, chart and picture are seen", async () => {
  const { context, page, seen } = await opened(`${CONSOLE_URL}/`);
  assert.equal(new URL(page.url()).pathname, "/console");
  await page.getByRole("button", { name: "Create session" }).waitFor();
  await picture(page, "start");
  await compared(page, "start");
  if (CONSOLE_PICTURES) {
    const painted = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
    console.log(`first contentful paint after ${painted} ms`);
  }
  await newSession(page);
  // A table of many rows is read page by page, wherever the page is.
  const many = await run(page, "import numpy\npd = __import__('pandas')\npd.DataFrame({'n': numpy.arange(1_000_000, dtype='int32')})");
  await many.getByText("1–20 of 1,000,000 rows").waitFor();
  await many.getByLabel("Row").fill("654321");
  await many.getByLabel("Row").press("Enter");
  await many.getByText("654,321–654,340 of").waitFor();
  await many.locator("tbody td", { hasText: "654320" }).first().waitFor();
  const shown = await run(page, SHOWN);
  await shown.locator(".ansi2", { hasText: "18,495" }).waitFor();
  // Sorted over all rows, and by pages.
  const rows = shown.locator("tbody tr");
  await rows.first().getByText("2024-01").waitFor();
  await shown.getByText("1–20 of 30 rows").waitFor();
  await shown.getByRole("button", { name: "orders" }).click();
  await shown.getByRole("button", { name: "orders" }).click();
  await rows.first().getByText("2026-06").waitFor();
  await shown.getByRole("button", { name: "Next" }).click();
  await shown.getByText("21–30 of 30 rows").waitFor();
  await rows.last().getByText("2024-01").waitFor();
  const colors = () => {
    const canvas = document.querySelector(".chart canvas");
    if (!canvas) return 0;
    return new Set(new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size;
  };
  await page.waitForFunction(`(${colors})() > 10`);
  const drawn = shown.locator("img.picture");
  await drawn.waitFor();
  assert.ok((await drawn.evaluate((image) => image.decode().then(() => image.naturalWidth))) > 100);
  await picture(page, "playground");
  await compared(page, "playground");
  await page.emulateMedia({ colorScheme: "dark" });
  await picture(page, "playground-dark");
  if (CONSOLE_PICTURES) await page.screenshot({ path: `${CONSOLE_PICTURES}/whole-dark.png`, fullPage: true });
  const again = await run(page, "Chart()");
  await again.locator(".chart canvas").waitFor();
  await page.setViewportSize({ width: 1120, height: 690 });
  await page.evaluate(() => scrollTo(0, 0));
  await picture(page, "console-playground-dark");
  await page.emulateMedia({ colorScheme: "light" });
  await picture(page, "console-playground");
  await page.emulateMedia({ colorScheme: "dark" });
  // A file up, into a cell, and down again.
  await page.locator("input[type=file]").setInputFiles({ name: "two words.csv", mimeType: "text/csv", buffer: Buffer.from("a\n41\n") });
  await page.getByRole("button", { name: "two words.csv", exact: true }).waitFor();
  const read = await run(page, "open('/workspace/out.txt', 'w').write(str(pd.read_csv('/workspace/two words.csv').a[0] + 1))");
  const saved = page.waitForEvent("download");
  await read.getByRole("button", { name: "out.txt" }).click();
  assert.equal(await readFile(await (await saved).path(), "utf8"), "42");
  // An error with the person's own line.
  const raised = await run(page, "x = 1\n\n1 / 0\n", "Raised");
  assert.match(await raised.locator(".marked mark").innerText(), /^ *3 +1 \/ 0/);
  await picture(page, "error-dark");
  await compared(page, "error-dark");
  // What the session holds is there after the page is opened again.
  await page.reload();
  await page.locator(".run").nth(3).waitFor();
  const session = page.url().split("/").pop();
  const hash = await page.evaluate(async (id) => (await (await fetch(`/v1/sessions/${id}/cells/2`)).json()).outputs[0].table.sha256, session);
  await page.getByRole("link", { name: "Artifacts" }).click();
  await page.getByLabel("SHA-256").fill(hash);
  await page.getByRole("button", { name: "Show" }).click();
  await page.getByText("1–20 of 30 rows").waitFor();
  await page.getByRole("link", { name: "Sessions" }).click();
  await page.locator("table.sessions tbody tr").first().waitFor();
  await picture(page, "sessions-dark");
  await page.locator("table.sessions tbody a", { hasText: session }).click();
  await page.getByText("Protections").first().waitFor();
  await page.locator(".timeline li").nth(3).waitFor();
  await picture(page, "session-dark");
  await page.getByRole("button", { name: "End" }).click();
  await page.getByText("No session is live").waitFor();
  quiet(seen);
  await context.close();
});

test("output appears while a cell runs, and an interrupt and a reset work", async () => {
  const { context, page, seen } = await opened(`${CONSOLE_URL}/console`);
  await newSession(page);
  const going = await start(page, "kept = 1\nprint('running on')\nwhile True: pass");
  await going.locator(".stdout", { hasText: "running on" }).waitFor();
  assert.equal(await going.locator(".status").innerText(), "Running");
  // It goes on while another panel is looked at.
  await page.getByRole("link", { name: "Operations" }).click();
  await page.goBack();
  await page.getByRole("button", { name: "Interrupt" }).click();
  await page.locator(".run .status", { hasText: "Interrupted" }).waitFor();
  await (await run(page, "kept")).locator("pre.value", { hasText: "1" }).waitFor();
  await page.getByRole("button", { name: "Reset" }).click();
  await run(page, "kept", "Raised");
  await page.getByLabel("Language").selectOption("bash");
  await (await run(page, "echo from $((40 + 2))")).locator(".stdout", { hasText: "from 42" }).waitFor();
  await page.getByLabel("Language").selectOption("python");
  await page.getByLabel("Timeout, s").fill("1");
  await run(page, "while True: pass", "Interrupted");
  await page.getByRole("button", { name: "End session" }).click();
  await page.getByRole("button", { name: "Create session" }).waitFor();
  quiet(seen);
  await context.close();
});

test("the editor keeps everything that is typed and pasted without pauses", async () => {
  const { context, page, seen } = await opened(`${CONSOLE_URL}/console`);
  await newSession(page);
  const { keyboard } = page;
  const editor = page.locator(".cm-content");
  const runs = page.locator(".run");
  const ran = async (count, printed) => {
    await page.waitForFunction((count) => document.querySelectorAll(".run").length === count, count);
    await runs.first().locator(".stdout", { hasText: printed }).waitFor();
    await runs.first().locator(".status:not(.going)").waitFor();
  };
  await editor.focus();
  // Emptying the editor and filling it again are changes that the page reacts to.
  for (let count = 1; count < 8; count += 2) {
    await keyboard.press("Control+a");
    await keyboard.press("Delete");
    await keyboard.type(`print("typed", 40 + ${count})`);
    await keyboard.press("Control+Enter");
    await ran(count, `typed ${40 + count}`);
    await keyboard.press("Control+a");
    await keyboard.press("Control+c");
    await keyboard.press("Delete");
    await keyboard.press("Control+v");
    await keyboard.press("Control+Enter");
    await ran(count + 1, `typed ${40 + count}`);
  }
  // An earlier cell replaces the text, and the person can undo that.
  await runs.last().getByRole("button", { name: "Edit again" }).click();
  assert.equal(await editor.innerText(), 'print("typed", 40 + 1)');
  await editor.press("Control+z");
  assert.equal(await editor.innerText(), 'print("typed", 40 + 7)');
  // The draft is there when one comes back.
  await page.getByRole("link", { name: "Operations" }).click();
  await page.goBack();
  await editor.waitFor();
  assert.equal(await editor.innerText(), 'print("typed", 40 + 7)');
  await editor.press("Control+a");
  await keyboard.press("Delete");
  await keyboard.press("Control+Enter");
  const hint = page.getByText("The cell is empty. Write code in the editor");
  await hint.waitFor();
  await keyboard.type("1");
  await hint.waitFor({ state: "detached" });
  assert.equal(await runs.count(), 8);
  await page.getByRole("button", { name: "End session" }).click();
  await page.getByRole("button", { name: "Create session" }).waitFor();
  quiet(seen);
  await context.close();
});

const hostile = (elsewhere) => `import pandas as pd, pathlib
bad = '<img src=x onerror="alert(1)"><script>alert(2)</script>'
display(pd.DataFrame({bad: [bad, "\\u202egnp.exe"]}))

class Page:
    def _repr_html_(self):
        return (bad + '<p>still a page</p><script>parent.document.title = "owned"</script>'
            '<img src="${elsewhere}/a.png"><link rel=stylesheet href="${elsewhere}/a.css">'
            '<iframe src="${elsewhere}/"></iframe><form action="${elsewhere}/"><input autofocus onfocus="alert(3)"></form>'
            '<meta http-equiv="refresh" content="0;url=${elsewhere}/b">')

class Svg:
    def _repr_svg_(self):
        return ('<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40" onload="alert(4)"><script>alert(5)</script>'
            '<image href="${elsewhere}/c.png"/><rect width="40" height="40" fill="red"/></svg>')

class Chart:
    def __init__(self, **fields): self.fields = fields
    def _repr_mimebundle_(self, **kwargs):
        spec = {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "title": bad, "mark": {"type": "point", "tooltip": True},
            "data": {"values": [{bad: 1, "u": "javascript:alert(6)", "i": "${elsewhere}/d.png"}]},
            "transform": [{"calculate": "datum.constructor.constructor('alert(7)')()", "as": "x"}],
            "encoding": {"x": {"field": "u"}, "href": {"field": "u"}}} | self.fields
        return {"application/vnd.vegalite.v5+json": spec, "text/plain": bad}

display(Page())
display(Svg())
display(Chart())
display(Chart(transform=[]))
display(Chart(transform=[], mark="image", encoding={"url": {"field": "i"}}))
display(Chart(transform=[], data={"url": "${elsewhere}/e.json"}))
pathlib.Path('/workspace/<img src=x onerror=alert(8)>.txt').write_text(bad)
print("\\x1b[31mred\\x1b[0m\\x1b]8;;javascript:alert(9)\\x07link\\x1b]8;;\\x07\\x1b[2J\\x1b]0;title\\x07" + bad)
print("x" * 5_000_000)
raise ValueError(bad)`;

test("content of a sandbox that is hostile does nothing", async () => {
  const { context, page, seen } = await opened(`${CONSOLE_URL}/console`);
  const asked = [];
  const elsewhere = createServer((request, answer) => {
    asked.push(request.url);
    answer.end();
  });
  await new Promise((listening) => elsewhere.listen(0, "127.0.0.1", listening));
  await newSession(page);
  const shown = await run(page, hostile(`http://localhost:${elsewhere.address().port}`), "Raised");
  await shown.locator(".ansi1", { hasText: "red" }).waitFor();
  const text = '<img src=x onerror="alert(1)"><script>alert(2)</script>';
  await shown.locator("th", { hasText: text }).waitFor();
  await shown.locator("td", { hasText: "⟨U+202E⟩gnp.exe" }).waitFor();
  await shown.locator(".raised", { hasText: text }).first().waitFor();
  await shown.locator(".stdout", { hasText: "link" }).waitFor();
  assert.ok((await shown.locator(".stdout").innerText()).length < 150_000);
  await shown.getByRole("button", { name: "<img src=x onerror=alert(8)>.txt" }).waitFor();
  const svg = shown.locator("img.picture");
  assert.equal(await svg.evaluate((image) => image.decode().then(() => image.naturalWidth)), 40);
  const inner = shown.frameLocator("iframe.html");
  await inner.getByText("still a page").waitFor();
  // Each chart is drawn, or says why it is not.
  const settled = () => [...document.querySelectorAll(".chart")].filter((place) => place.querySelector("canvas") || place.nextElementSibling?.matches(".note")).length;
  await page.waitForFunction(`(${settled})() === 4`);
  const points = shown.locator(".chart canvas");
  for (const canvas of await points.all()) {
    const box = await canvas.boundingBox();
    for (const x of [0.25, 0.5, 0.75]) await canvas.click({ position: { x: box.width * x, y: box.height / 2 }, force: true });
  }
  await shown.getByText("the console loads no data for charts").first().waitFor();
  assert.match(await page.title(), /^Playground/);
  await picture(page, "hostile");
  if (CONSOLE_PICTURES) await page.screenshot({ path: `${CONSOLE_PICTURES}/hostile-whole.png`, fullPage: true });
  await page.setViewportSize({ width: 375, height: 700 });
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 375, "wider than 375 px");
  await page.getByRole("button", { name: "End session" }).click();
  await page.getByRole("button", { name: "Create session" }).waitFor();
  quiet(seen);
  assert.deepEqual(asked, []);
  elsewhere.close();
  await context.close();
});

test("the page works by keyboard and on a small screen", async () => {
  const { context, page, seen } = await opened(`${CONSOLE_URL}/console`, { viewport: { width: 375, height: 740 } });
  await page.getByRole("button", { name: "Create session" }).waitFor();
  for (const landmark of ["banner", "navigation", "main", "contentinfo"]) await page.getByRole(landmark).waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  for (const panel of PANELS) {
    await page.getByRole("link", { name: panel, exact: true }).click();
    await page.getByRole("main", { name: panel }).waitFor();
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 375, panel);
  }
  await page.getByRole("link", { name: "Playground", exact: true }).click();
  await newSession(page);
  await run(page, "import pandas as pd\npd.DataFrame({f'column {i}': range(3) for i in range(12)})");
  await page.locator(".run tbody tr").first().waitFor();
  await picture(page, "small");
  await compared(page, "small");
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 375);
  await page.getByRole("link", { name: "Sessions", exact: true }).click();
  await page.locator("table.sessions tbody tr").first().waitFor();
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 375, "the list of sessions");
  await page.goBack();
  await page.locator(".cm-content").focus();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Run");
  await page.getByRole("button", { name: "End session" }).click();
  await page.getByRole("button", { name: "Create session" }).waitFor();
  quiet(seen);
  await context.close();
});

test("a key signs in, and pages of other sites can use the cookie for nothing", async () => {
  const { context, page, seen } = await opened(`${CONSOLE_KEYED_URL}/console`);
  await page.getByLabel("API key").fill("cbk_wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("Incorrect API key").waitFor();
  await picture(page, "sign-in");
  await compared(page, "sign-in");
  await page.getByLabel("API key").fill(CONSOLE_KEY);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Create session" }).waitFor();
  await page.reload();
  await newSession(page);
  await page.getByRole("link", { name: "Operations" }).click();
  await page.getByText("cellblock key create NAME").waitFor();
  await page.locator(".quotas li", { hasText: "fetches per minute" }).getByText("2").waitFor();
  assert.equal(await page.getByRole("heading", { name: "Keys", exact: true }).count(), 0, "only administrators have this");
  await picture(page, "key");
  await page.goBack();
  await page.getByRole("button", { name: "End session" }).waitFor();
  const [cookie] = await context.cookies();
  assert.deepEqual([cookie.httpOnly, cookie.sameSite], [true, "Strict"]);
  assert.ok(!cookie.value.includes(CONSOLE_KEY));
  assert.equal(await page.evaluate(() => document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)), "{}{}");
  quiet(seen);
  // A page of another site, in the same browser: it posts as a form and by script, with the cookie if the browser sends it.
  const sessions = () => page.evaluate(() => fetch("/v1/sessions", { headers: { "x-cellblock-console": "1" } }).then((answer) => answer.json()).then((list) => list.data.length));
  assert.equal(await sessions(), 1);
  const session = page.url().split("/").pop();
  const forged = `<body><iframe src="${CONSOLE_KEYED_URL}/console"></iframe><form method=post target=_self action="${CONSOLE_KEYED_URL}/v1/sessions"></form><script>
    const plain = { mode: "no-cors", credentials: "include", method: "POST" };
    Promise.allSettled([
      fetch("${CONSOLE_KEYED_URL}/v1/sessions", plain),
      fetch("${CONSOLE_KEYED_URL}/v1/sessions/${session}/reset", plain),
      fetch("${CONSOLE_KEYED_URL}/console/sign-out", plain),
      fetch("${CONSOLE_KEYED_URL}/v1/sessions", { method: "POST", credentials: "include", headers: { "x-cellblock-console": "1" } }),
    ]).then((all) => { document.title = all.map((one) => one.status).join(); });
  </script>`;
  const other = createServer((_, answer) => answer.setHeader("content-type", "text/html").end(forged));
  await new Promise((listening) => other.listen(0, "127.0.0.1", listening));
  const attacker = await context.newPage();
  await attacker.goto(`http://localhost:${other.address().port}/`);
  await attacker.waitForFunction(() => document.title.includes(","));
  assert.match(await attacker.title(), /rejected$/);
  assert.equal(attacker.frames()[1]?.url().includes("/console") ?? false, false, "the console is shown in a frame");
  const [answer] = await Promise.all([attacker.waitForNavigation(), attacker.evaluate(() => document.forms[0].submit())]);
  assert.ok([401, 403].includes(answer.status()));
  await attacker.close();
  other.close();
  assert.equal(await sessions(), 1);
  await page.getByRole("button", { name: "End session" }).click();
  await page.getByRole("button", { name: "Create session" }).waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("API key").waitFor();
  const replayed = await fetch(`${CONSOLE_KEYED_URL}/v1/sessions`, { headers: { cookie: `${cookie.name}=${cookie.value}`, "x-cellblock-console": "1" } });
  assert.equal(replayed.status, 401);
  await context.close();
});
