// The panels for sessions, runs, responses, toolsets and operations.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { test } from "node:test";
import { CONSOLE_ADMIN_KEY, CONSOLE_KEYED_URL, CONSOLE_URL, PANELS, asked, attempt, newSession, opened, picture, pictureOfGuide, quiet, run, small, start } from "./browser.js";
import { compared } from "./compared.js";

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
  // The rest says what the machine can do.
  await compared(page.locator("section", { has: page.getByRole("heading", { name: "Checkpoints" }) }), "checkpoints");
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
  await compared(page, "runs");
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
  await pictureOfGuide(page, "console-run");
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

test("a tried cell is kept or discarded, and forks go on from where a session is", async () => {
  const { context, page, seen } = await opened(`${CONSOLE_URL}/console`);
  await newSession(page);
  const id = page.url().split("/").pop();
  await run(page, "rows = [1, 2]");
  const bad = "<img src=x onerror=alert(31)>.txt";
  const tried = await attempt(page, `rows = rows + [3]\nopen('/workspace/${bad}', 'w').write('x')\nlen(rows)`);
  await tried.locator("pre.value", { hasText: "3" }).waitFor();
  await tried.locator(".changes li", { hasText: "variable changed" }).locator("code", { hasText: "rows" }).waitFor();
  await tried.locator(".changes li", { hasText: "file created" }).locator("code", { hasText: bad }).waitFor();
  await page.getByText("Cell 2 was tried").waitFor();
  assert.equal(await page.getByRole("button", { name: "Run", exact: true }).isDisabled(), true);
  await picture(page, "try");
  await compared(page, "try");
  await small(page, "try");
  // The decision is not lost with the page.
  await page.reload();
  await page.getByText("Cell 2 was tried").waitFor();
  await page.getByRole("button", { name: "Discard" }).click();
  await page.getByText("Cell 2 was tried").waitFor({ state: "detached" });
  await (await run(page, "len(rows)")).locator("pre.value", { hasText: "2" }).waitFor();
  await attempt(page, "rows = rows + [3, 4]");
  await page.getByRole("button", { name: "Keep" }).click();
  // Nothing runs before the decision is taken.
  await page.getByText("was tried").waitFor({ state: "detached" });
  await (await run(page, "len(rows)")).locator("pre.value", { hasText: "4" }).waitFor();
  await page.goto(`${CONSOLE_URL}/console#/sessions/${id}`);
  await page.getByLabel("New sessions").fill("2");
  await page.getByRole("button", { name: "Fork the session" }).click();
  const forks = page.getByRole("list", { name: "Forks" }).getByRole("link");
  await forks.nth(1).waitFor();
  const ids = await forks.allInnerTexts();
  await forks.first().click();
  await (await run(page, "rows.append(5)\nlen(rows)")).locator("pre.value", { hasText: "5" }).waitFor();
  const { outputs } = await asked(page, "POST", `/v1/sessions/${ids[1]}/cells`, { code: "len(rows)" });
  assert.equal(outputs[0].value, 4);
  for (const one of [id, ...ids]) await asked(page, "DELETE", `/v1/sessions/${one}`);
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
  await call.locator(".sides > div").nth(1).locator(".stdout", { hasText: "green" }).waitFor();
  await page.locator(".step.user pre", { hasText: BAD }).waitFor();
  await page.getByText("Events as they were streamed").click();
  await page.locator(".events li", { hasText: "response.code_interpreter_call_code.delta" }).first().waitFor();
  await page.evaluate(() => scrollTo(0, 0));
  await picture(page, "response");
  await compared(page, "response");
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
  await compared(page, "workbench");
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
  await run(page, `cities = weather.get_forecast(city="everywhere")\ntitle = ${JSON.stringify(BAD)}`);
  await run(page, 'warm = cities.query("high > 20")\nwarm.describe()');
  await page.getByRole("heading", { name: "Fetch log" }).waitFor();
  await page.locator("tbody code", { hasText: "weather.get_forecast" }).waitFor();
  await page.locator(".lineage .variable", { hasText: "warm" }).waitFor();
  assert.ok((await page.locator(".lineage path").count()) >= 2);
  await page.locator("aside summary", { hasText: "weather" }).waitFor();
  await pictureOfGuide(page, "console-notebook");
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
  // Without keys, everybody here may make the first, and reads what that means.
  await page.getByText("Make the first key").click();
  await page.getByText("every request then needs a key").waitFor();
  await page.getByText("Make the first key").click();
  await page.getByRole("heading", { name: "Decisions" }).waitFor();
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

test("an administrator makes a key, whose secret is shown once, and revokes it", async () => {
  const { context, page, seen } = await opened(`${CONSOLE_KEYED_URL}/console#/operations`);
  await page.route("**/v1/server", async (route) => {
    const response = await route.fetch();
    const build = { what: `requirements ${BAD}`, stage: "installing packages", done: 5 << 20, total: 20 << 20, began: Date.now() / 1000 - 5 };
    await route.fulfill({ response, json: { ...(await response.json()), builds: [build] } });
  });
  await page.getByLabel("API key").fill(CONSOLE_ADMIN_KEY);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Keys", exact: true }).waitFor();
  const builds = page.getByRole("list", { name: "Running builds" });
  await builds.getByText("installing packages").waitFor();
  await builds.getByText("5.0 MiB of 20 MiB").waitFor();
  assert.equal(await builds.getByRole("progressbar").getAttribute("value"), "5242880");
  await page.getByRole("heading", { name: "Machine" }).waitFor();
  await page.getByRole("region", { name: "Images, the last that was built first" }).getByText("in use").waitFor();
  await page.getByText("Make a key").click();
  const form = page.locator("form.tool");
  await form.getByLabel("Name", { exact: true }).fill(BAD);
  await form.getByLabel("Expires").selectOption("in 7 days");
  await form.getByLabel("sandboxes").fill("1");
  await form.getByRole("button", { name: "Make the key" }).click();
  const secret = await page.getByLabel("Secret of the key").inputValue();
  assert.match(secret, /^cbk_/);
  const row = page.getByRole("region", { name: "Keys, the oldest first" }).locator("tr", { hasText: BAD });
  await row.getByText("sandboxes 1").waitFor();
  await row.getByText("expires in").waitFor();
  await page.getByRole("button", { name: "I have stored it" }).click();
  await small(page, "keys");
  assert.ok(!(await page.content()).includes(secret));
  // It works until it is revoked, and one sandbox is all that it may have.
  const ask = (method, path, body) => fetch(`${CONSOLE_KEYED_URL}${path}`, { method, headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" }, ...(body && { body }) });
  const made = await (await ask("POST", "/v1/sessions", "{}")).json();
  assert.equal((await ask("POST", "/v1/sessions", "{}")).status, 429);
  await ask("DELETE", `/v1/sessions/${made.id}`);
  await row.getByRole("button", { name: "Revoke" }).click();
  await row.getByRole("button", { name: "for good" }).click();
  await row.getByText("revoked").waitFor();
  assert.equal((await ask("GET", "/v1/key")).status, 401);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("API key").waitFor();
  quiet(seen);
  await context.close();
});

test("a connection that is lost loses and doubles no output", async () => {
  const { port } = new URL(CONSOLE_URL);
  const sockets = new Set();
  const between = createServer((socket) => {
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
  const going = await start(page, "import time\nfor number in range(120):\n    print('line', number, flush=True)\n    time.sleep(0.02)");
  for (const seen of ["line 9", "line 60"]) {
    await going.locator(".stdout", { hasText: seen }).waitFor();
    for (const socket of sockets) socket.destroy();
  }
  await going.locator(".status", { hasText: "Completed" }).waitFor();
  await going.getByText("No output is missing").waitFor();
  const { stdout } = await asked(page, "GET", `/v1/sessions/${page.url().split("/").pop()}/cells/1`);
  const lines = Array.from({ length: 120 }, (_, number) => `line ${number}`);
  assert.deepEqual(stdout.trim().split("\n"), lines);
  assert.deepEqual((await going.locator(".stdout").innerText()).trim().split("\n"), lines);
  await picture(page, "lost");
  await page.getByRole("button", { name: "End session" }).click();
  await page.getByRole("button", { name: "Create session" }).waitFor();
  quiet(seen);
  await context.close();
  between.close();
});
