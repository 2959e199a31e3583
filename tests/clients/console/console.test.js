// The console in Chromium, against a gateway without keys (CONSOLE_URL) and one with keys (CONSOLE_KEYED_URL, CONSOLE_KEY).
// With CONSOLE_PICTURES, pictures of the main views are written to that folder.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { connect, createServer as connectionServer } from "node:net";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";

const { CONSOLE_URL, CONSOLE_KEYED_URL, CONSOLE_KEY, CONSOLE_CHROMIUM, CONSOLE_PICTURES } = process.env;
let browser;

before(async () => {
  // Tests run as root, for whom Chromium has no sandbox. The server is the test's own.
  browser = await chromium.launch({ executablePath: CONSOLE_CHROMIUM, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
});
after(() => browser?.close());

/** A page that remembers all that hostile content could do. */
async function opened(url, options = {}) {
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

function quiet(seen) {
  assert.deepEqual(seen, { dialogs: [], errors: [], strangers: [], pages: 0 });
}

async function newSession(page) {
  await page.getByRole("button", { name: "Create session" }).click();
  await page.getByRole("button", { name: "Run", exact: true }).waitFor();
}

async function start(page, code) {
  await page.locator(".cm-content").fill(code);
  await page.locator(".cm-content").press("Control+Enter");
  return page.locator(".run").first();
}

async function run(page, code, ended = "Completed") {
  const count = await page.locator(".run").count();
  const made = await start(page, code);
  await page.waitForFunction((count) => document.querySelectorAll(".run").length > count, count);
  await made.locator(".status:not(.going)").waitFor();
  const status = await made.locator(".status").innerText();
  assert.ok(status.startsWith(ended), `${status} instead of ${ended}: ${(await made.innerText()).slice(0, 4000)}`);
  return made;
}

async function picture(page, name) {
  if (!CONSOLE_PICTURES) return;
  // Charts are drawn again for other colors.
  await page.waitForTimeout(500);
  await page.screenshot({ path: `${CONSOLE_PICTURES}/${name}.png` });
}

const PANELS = ["Playground", "Sessions", "Runs", "Responses", "Artifacts", "Operations"];

/** Asks the API as the page could. */
function asked(page, method, path, body) {
  const ask = async ([method, path, body]) => {
    const headers = { "content-type": "application/json", "x-cellblock-console": "1" };
    const answer = await fetch(path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    return answer.json();
  };
  return page.evaluate(ask, [method, path, body]);
}

/** Looks at something on a small screen, where nothing may be wider than it. */
async function small(page, name) {
  const size = page.viewportSize();
  await page.setViewportSize({ width: 375, height: 740 });
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 375, `${name} is wider than 375 px`);
  await picture(page, `${name}-small`);
  await page.setViewportSize(size);
}

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
  if (CONSOLE_PICTURES) {
    const painted = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
    console.log(`first contentful paint after ${painted} ms`);
  }
  await newSession(page);
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
  // What the session holds is there after the page is opened again.
  await page.reload();
  await page.locator(".run").nth(2).waitFor();
  const session = page.url().split("/").pop();
  const hash = await page.evaluate(async (id) => (await (await fetch(`/v1/sessions/${id}/cells/1`)).json()).outputs[0].table.sha256, session);
  await page.getByRole("link", { name: "Artifacts" }).click();
  await page.getByLabel("SHA-256").fill(hash);
  await page.getByRole("button", { name: "Show" }).click();
  await page.getByText("1–20 of 30 rows").waitFor();
  await page.getByRole("link", { name: "Sessions" }).click();
  await page.locator("table.sessions tbody tr").first().waitFor();
  await picture(page, "sessions-dark");
  await page.locator("table.sessions tbody a").first().click();
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
  await page.getByLabel("API key").fill(CONSOLE_KEY);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Create session" }).waitFor();
  await page.reload();
  await newSession(page);
  await page.getByRole("link", { name: "Operations" }).click();
  await page.getByText("cellblock key create NAME").waitFor();
  await page.locator(".quotas li", { hasText: "fetches per minute" }).getByText("2").waitFor();
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

const BAD = '<img src=x onerror="alert(20)"><script>alert(21)</script>';

test("runs are recorded, replayed and compared, and checkpoints bring a session back", async () => {
  const { context, page, seen } = await opened(`${CONSOLE_URL}/console`);
  await newSession(page);
  await run(page, `# ${BAD}\nimport pandas as pd, random\nn = 1\nprint("\\x1b[31m" + "y" * 5_000_000)\npd.DataFrame({${JSON.stringify(BAD)}: [1, 2]})`);
  const id = page.url().split("/").pop();
  await page.goto(`${CONSOLE_URL}/console#/sessions/${id}`);
  await page.getByLabel("Name", { exact: true }).fill("first");
  await page.getByRole("button", { name: "Make a checkpoint" }).click();
  await page.locator(".tree .node", { hasText: "first" }).waitFor();
  await page.getByRole("link", { name: "Open in the playground" }).click();
  await run(page, "n = random.random()\nn");
  await run(page, "1 / 0", "Raised");
  await page.goto(`${CONSOLE_URL}/console#/sessions/${id}`);
  await page.getByLabel("Name", { exact: true }).fill("second");
  await page.getByRole("button", { name: "Make a checkpoint" }).click();
  // It comes after the first, so it is below it.
  const nested = page.locator(".tree .tree .node", { hasText: "second" });
  await nested.waitFor();
  await page.locator(".timeline li", { hasText: "Checkpoint second" }).waitFor();
  await page.locator(".timeline code", { hasText: "# <img src=x" }).waitFor();
  await picture(page, "session");
  await small(page, "session");
  await page.locator(".tree .node", { hasText: "first" }).getByRole("button", { name: "Roll back" }).click();
  await page.getByText("The session is as it was after cell 1.").waitFor();
  await nested.getByRole("button", { name: "Drop" }).click();
  await nested.waitFor({ state: "detached" });
  const { outputs } = await asked(page, "POST", `/v1/sessions/${id}/cells`, { code: "n" });
  assert.equal(outputs[0].value, 1);
  await page.getByRole("link", { name: "All runs of this session" }).click();
  const rows = page.locator("table.sessions tbody tr");
  await rows.nth(3).waitFor();
  await picture(page, "runs");
  // Nothing that the oldest made is up to chance.
  await rows.nth(3).locator("a").click();
  await page.locator("th", { hasText: BAD }).first().waitFor();
  await page.locator(".kept .ansi1").waitFor();
  await page.getByRole("button", { name: "Replay" }).click();
  await page.getByText("It made the same again").waitFor();
  await page.getByText("4.8 MiB").first().waitFor();
  await picture(page, "run");
  await page.goBack();
  await rows.nth(2).locator("a").click();
  await page.getByRole("button", { name: "Replay" }).click();
  await page.getByText("It made something else").waitFor();
  await page.locator(".made .differs", { hasText: "output 1" }).first().waitFor();
  await page.emulateMedia({ colorScheme: "dark" });
  await picture(page, "replay-dark");
  await small(page, "replay");
  await asked(page, "DELETE", `/v1/sessions/${id}`);
  // Its records outlive a session.
  await page.goto(`${CONSOLE_URL}/console#/sessions/${id}`);
  await page.getByText("This session has ended").waitFor();
  await page.locator(".timeline li").nth(3).waitFor();
  quiet(seen);
  await context.close();
});

test("a turn is shown as the model saw it and as it was", async () => {
  const { context, page, seen } = await opened(`${CONSOLE_URL}/console#/responses`);
  const fence = "```";
  const response = await asked(page, "POST", "/v1/responses", {
    model: "demo",
    input: `${BAD}\n${fence}python\nprint('''${BAD} \\x1b[32mgreen''')\n6 * 7\n${fence}`,
    tools: [{ type: "code_interpreter", container: { type: "auto" } }],
    include: ["code_interpreter_call.outputs"],
    background: true,
  });
  assert.ok(response.id, JSON.stringify(response));
  await page.getByRole("button", { name: "Refresh" }).click();
  await page.locator("table.sessions tbody a").first().click();
  const call = page.locator(".step.function_call");
  await call.getByText("As the model saw it").waitFor();
  await call.locator("pre.code", { hasText: "6 * 7" }).waitFor();
  await call.locator(".sides > div").first().getByText("42").first().waitFor();
  await call.locator(".sides > div").nth(1).locator(".ansi2", { hasText: "green" }).waitFor();
  await page.locator(".step.user pre", { hasText: BAD }).waitFor();
  await page.getByText("Events as they were streamed").click();
  await page.locator(".events li", { hasText: "response.code_interpreter_call_code.delta" }).first().waitFor();
  await page.evaluate(() => scrollTo(0, 0));
  await picture(page, "response");
  await small(page, "response");
  await page.getByRole("link", { name: "its runs" }).click();
  await page.locator("table.sessions tbody tr").first().waitFor();
  await page.getByRole("link", { name: "Responses" }).click();
  await page.locator("table.sessions tbody tr", { hasText: "Completed" }).first().waitFor();
  await small(page, "responses");
  quiet(seen);
  await context.close();
});

test("toolsets have panels of their own", async () => {
  const { context, page, seen } = await opened(`${CONSOLE_URL}/console`);
  // A workbench: commands and files.
  await page.getByLabel("Toolset").selectOption("workbench");
  await newSession(page);
  await page.getByLabel("Command, for sh").fill(`printf '%s' '${BAD}'; echo 42 > '/tmp/output/<img src=x onerror=alert(22)>.txt'; exit 3`);
  await page.getByRole("button", { name: "Run command" }).click();
  const called = page.locator("article[aria-label^='Call of']").first();
  await called.getByText("exit code 3").waitFor();
  await called.locator(".stdout", { hasText: BAD }).waitFor();
  const saved = page.waitForEvent("download");
  await called.getByRole("button", { name: "<img src=x onerror=alert(22)>.txt" }).click();
  assert.equal(await readFile(await (await saved).path(), "utf8"), "42\n");
  await page.getByRole("button", { name: "Write a file" }).click();
  await page.getByLabel("Path, below").fill("/workspace/a.txt");
  await page.getByLabel("Content").fill("one two");
  await page.getByRole("button", { name: "Write", exact: true }).click();
  await called.getByText("7 B written").waitFor();
  await page.getByRole("button", { name: "Edit a file" }).click();
  await page.getByLabel("Path, below").fill("/workspace/a.txt");
  await page.getByLabel("Text to replace").fill("three");
  await page.getByRole("button", { name: "Edit", exact: true }).click();
  await called.getByText("Rejected or failed").waitFor();
  await page.locator("aside input[type=file]").first().setInputFiles({ name: "sales.csv", mimeType: "text/csv", buffer: Buffer.from("a\n1\n") });
  await page.locator("aside code", { hasText: "sales.csv" }).waitFor();
  await picture(page, "workbench");
  await small(page, "workbench");
  await page.getByRole("button", { name: "End session" }).click();
  // A derivation: aliases and a contract.
  await page.getByLabel("Toolset").selectOption("derivation");
  await page.getByRole("button", { name: "Create session" }).click();
  await page.getByRole("button", { name: "Record", exact: true }).click();
  await page.locator(".plain-list code", { hasText: "get_prices_1" }).waitFor();
  await page.getByRole("button", { name: "Derive" }).click();
  await called.locator("pre.value", { hasText: '"highest": 43' }).first().waitFor();
  await picture(page, "derivation");
  await page.getByRole("checkbox", { name: "get_prices_1" }).uncheck();
  await page.getByRole("button", { name: "Derive" }).click();
  await called.locator(".raised", { hasText: "inputAliases" }).first().waitFor();
  await small(page, "derivation");
  await page.getByRole("button", { name: "End session" }).click();
  // A notebook: what was fetched, and from what variables are made.
  await page.getByLabel("Toolset").selectOption("notebook");
  await newSession(page);
  await run(page, `cities = weather.get_forecast(city="everywhere")\nbad = ${JSON.stringify(BAD)}`);
  await run(page, "warm = [row for row in cities.to_dict('records')] if hasattr(cities, 'to_dict') else list(cities)");
  await page.getByRole("heading", { name: "Fetch log" }).waitFor();
  await page.locator("tbody code", { hasText: "weather.get_forecast" }).waitFor();
  await page.locator(".lineage .variable", { hasText: "warm" }).waitFor();
  assert.ok((await page.locator(".lineage path").count()) >= 2);
  await page.locator("aside summary", { hasText: "weather" }).waitFor();
  await picture(page, "notebook");
  await page.emulateMedia({ colorScheme: "dark" });
  await picture(page, "notebook-dark");
  await small(page, "notebook");
  await page.getByRole("button", { name: "End session" }).click();
  await page.getByRole("button", { name: "Create session" }).waitFor();
  quiet(seen);
  await context.close();
});

test("the server, its metrics and its decisions are seen", async () => {
  const { context, page, seen } = await opened(`${CONSOLE_URL}/console#/operations`);
  await page.locator(".status", { hasText: "ready" }).waitFor();
  await page.locator(".charts canvas").nth(2).waitFor();
  await page.getByRole("heading", { name: "Your key" }).waitFor();
  await picture(page, "operations");
  await page.emulateMedia({ colorScheme: "dark" });
  await picture(page, "operations-dark");
  await small(page, "operations");
  // Each panel by keyboard alone.
  for (const panel of PANELS) {
    await page.getByRole("link", { name: panel, exact: true }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("main", { name: panel }).waitFor();
  }
  quiet(seen);
  await context.close();
});

test("a connection that is lost loses and doubles no output", async () => {
  const { port } = new URL(CONSOLE_URL);
  const sockets = new Set();
  const between = connectionServer((socket) => {
    const server = connect(Number(port), "127.0.0.1");
    for (const one of [socket, server]) {
      sockets.add(one);
      one.on("error", () => {});
      one.on("close", () => (one === socket ? server : socket).destroy());
    }
    socket.pipe(server).pipe(socket);
  });
  await new Promise((listening) => between.listen(0, "127.0.0.1", listening));
  const { context, page, seen } = await opened(`http://127.0.0.1:${between.address().port}/console`);
  await newSession(page);
  const going = await start(page, "import time\nfor number in range(1000):\n    print('line', number, flush=True)\n    time.sleep(0.02)");
  await going.locator(".stdout", { hasText: "line 9" }).waitFor();
  for (const socket of sockets) socket.destroy();
  await going.locator(".status", { hasText: "Interrupted" }).waitFor();
  await going.getByText("The connection was lost").waitFor();
  const lines = (await going.locator(".stdout").innerText()).trim().split("\n");
  assert.ok(lines.length >= 10, String(lines.length));
  assert.deepEqual(
    lines,
    lines.map((_, number) => `line ${number}`),
  );
  await picture(page, "lost");
  await page.getByRole("button", { name: "End session" }).click();
  await page.getByRole("button", { name: "Create session" }).waitFor();
  quiet(seen);
  await context.close();
  between.close();
});
