// Everything that a server has, on the one at CELLBLOCK_URL with CELLBLOCK_KEY.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFile, rm, writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { promisify } from "node:util";

import { MockLanguageModelV3 } from "ai/test";
import { generateText, stepCountIs } from "ai";

import { cellblockTools } from "../dist/ai.js";
import { Client, ServerError } from "../dist/index.js";
import { cellblockTools as mastraTools } from "../dist/mastra.js";

const client = new Client({ url: process.env.CELLBLOCK_URL, key: process.env.CELLBLOCK_KEY });
let session;
before(async () => {
  session = await client.session();
});
after(() => session.close());

const unique = (prefix) => `${prefix}${randomBytes(4).toString("hex")}`;

test("values, tables, pictures and files have types", async () => {
  const heard = [];
  const result = await session.run(
    "import pandas, matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()\nopen('/tmp/output/n.txt', 'w').write('hello')\n" +
      "print('ü', flush=True)\npandas.DataFrame({'a': [1, 2], 'b': ['x', None]})",
    { onOutput: (stream, text) => heard.push(stream, text) },
  );
  assert.deepEqual([result.outcome, heard.join("")], ["completed", "stdoutü\n"]);
  assert.deepEqual([result.table.rowCount, result.table.columns], [2, ["a", "b"]]);
  assert.deepEqual(await result.table.rows({ sort: 0, descending: true, limit: 1 }), [{ a: 2, b: null }]);
  assert.equal(await result.table.csv({ limit: 1 }), "a,b\n1,x\n");
  assert.equal(new TextDecoder().decode((await result.table.parquet()).subarray(0, 4)), "PAR1");
  assert.ok((await result.table.arrow()).length > 100);
  assert.deepEqual([...(await result.figure.picture()).subarray(1, 4)], [...Buffer.from("PNG")]);
  assert.deepEqual([result.files[0].name, new TextDecoder().decode(await result.files[0].read())], ["n.txt", "hello"]);
});

test("code that fails is a result, and an aborted cell is interrupted", async () => {
  const failed = await session.run("1 / 0");
  assert.deepEqual([failed.outcome, failed.error.type], ["raised", "ZeroDivisionError"]);
  const abort = new AbortController();
  const endless = session.run("print('go', flush=True)\nwhile True: pass", { signal: abort.signal, onOutput: () => abort.abort() });
  await assert.rejects(endless, { name: "AbortError" });
  assert.equal((await session.run("7")).value, 7);
});

test("events are streamed, and resumed after a lost connection", async () => {
  const streamId = unique("c");
  let last;
  for await (const event of session.stream("print('a', flush=True)\n1", { streamId })) {
    last = event.sequence_number;
    break;
  }
  const rest = [];
  for await (const event of session.resume(streamId, { startingAfter: last })) rest.push(event);
  assert.equal(session.result(rest.at(-1).cell).value, 1);
});

test("checkpoints, tries and forks branch the state", async () => {
  await session.run("state = 1");
  await session.checkpoint("one");
  await session.run("state = 2");
  await session.rollback("one");
  assert.equal((await session.run("state")).value, 1);
  const attempt = await session.tryRun("state = 3");
  assert.deepEqual(attempt.changes.variables.map((it) => it.name), ["state"]);
  await attempt.discard();
  await (await session.tryRun("state = 4")).keep();
  const forks = await session.fork(2);
  assert.deepEqual(await Promise.all(forks.map(async (fork) => (await fork.run("state")).value)), [4, 4]);
  await Promise.all(forks.map((fork) => fork.close()));
  assert.ok((await session.events()).some((event) => event.event === "try_kept"));
  assert.equal((await session.checkpoints()).length, 1);
  await session.deleteCheckpoint("one");
});

test("inputs, variables and files go in and out", async () => {
  const bound = await session.put("rows", new TextEncoder().encode("k;v\na;1\n"), { format: "csv" });
  assert.deepEqual(bound.detected, ["separator: semicolon (`;`)"]);
  await session.put("setting", { a: [1, null] });
  assert.equal((await session.run("setting == {'a': [1, None]} and int(rows.v.sum())")).value, 1);
  assert.ok((await session.variables()).some((it) => it.name === "setting"));
  assert.equal((await session.variable("rows", { rows: 1, page: 0 })).output.type, "dataframe");
  await session.write("in ü.txt", "é");
  assert.equal(new TextDecoder().decode(await session.read("in ü.txt")), "é");
  await session.remove("in ü.txt");
  await assert.rejects(session.read("in ü.txt"), (error) => error instanceof ServerError && error.code === "file_not_found");
});

test("programs run beside cells, with terminals", async () => {
  const cat = await session.startProcess(["cat"], { stdin: true });
  await cat.send("one\n");
  await cat.send(new TextEncoder().encode("two\n"), { close: true });
  let text = "";
  for await (const piece of cat) text += piece;
  assert.equal(text, "one\ntwo\n");
  assert.equal((await cat.wait()).exit_code, 0);
  if (typeof WebSocket !== "function") return;
  const shell = await session.startProcess(["sh"], { terminal: { rows: 24, columns: 80 } });
  const terminal = await shell.terminal();
  terminal.resize(30, 100);
  terminal.send("stty size; exit 7\r");
  let shown = "";
  for await (const piece of terminal) shown += new TextDecoder().decode(piece);
  assert.match(shown, /30 100/);
  assert.equal(terminal.end.exit_code, 7);
});

test("volumes, runs and skills outlive sessions", async () => {
  const volume = unique("v");
  const first = await client.session({ volume });
  await first.run("open('/workspace/volume/a', 'w').write('kept')");
  const [run] = await client.runs({ session: first.id });
  await first.close();
  assert.equal((await client.volume(volume)).files, 1);
  await client.deleteVolume(volume);
  assert.equal((await client.run(run.id)).outcome, "completed");
  const name = unique("count-");
  const skill = await client.addSkill({ [`${name}/SKILL.md`]: `---\nname: ${name}\ndescription: Counts.\n---\nCount.\n` });
  const skilled = await client.session({ skills: [{ type: "skill_reference", skill_id: skill.id }] });
  assert.equal((await skilled.run(`'Count.' in open('/skills/${name}/SKILL.md').read()`)).value, true);
  await skilled.close();
  await client.deleteSkill(skill.id);
});

test("the server describes itself, and refuses a key without rights with its code", async () => {
  assert.ok((await client.sessions()).some((it) => it.id === session.id));
  assert.equal((await (await client.continueSession(session.id)).describe()).toolset, "interpreter");
  assert.equal((await client.execute("print(6 * 7)")).stdout, "42\n");
  await assert.rejects(client.keys(), (error) => error.code === "not_an_administrator");
});

test("a model of the AI SDK runs code, and repairs it from the text that it gets", async () => {
  const code = (id, text) => ({ type: "tool-call", toolCallId: id, toolName: "run_python", input: JSON.stringify({ code: text }) });
  const answers = [[code("1", "1 / 0")], [code("2", "6 * 7")], [{ type: "text", text: "It is 42." }]];
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
  let step = 0;
  const model = new MockLanguageModelV3({
    doGenerate: async () => {
      const content = answers[step++];
      return { content, finishReason: { unified: step < 3 ? "tool-calls" : "stop" }, usage, warnings: [] };
    },
  });
  const results = [];
  const tools = await cellblockTools(session, { onResult: (result) => results.push(result) });
  const answer = await generateText({ model, tools, prompt: "6 * 7?", stopWhen: stepCountIs(4) });
  assert.equal(answer.text, "It is 42.");
  assert.deepEqual(results.map((it) => it.outcome), ["raised", "completed"]);
  const texts = answer.steps.flatMap((it) => it.toolResults.map((result) => result.output));
  assert.match(texts[0], /ZeroDivisionError/);
  assert.equal(texts[1], "42");
});

test("tools of Mastra run code", async () => {
  const { run_python: tool } = await mastraTools(session);
  assert.equal(await tool.execute({ code: "6 * 7" }, {}), "42");
  assert.equal(await tool.execute({ code: "6 * 7" }), "42");
  assert.match(tool.description, /\w/);
});

for (const page of ["../README.md", "../../docs/guides/javascript.md"]) {
  test(`the examples of ${page} run and print what they say`, async () => {
    const text = await readFile(new URL(page, import.meta.url), "utf8");
    const blocks = [...text.matchAll(/^```js\n(.*?)^```/gms)].map((it) => it[1]).filter((it) => !it.includes("model"));
    assert.ok(blocks.length > 0);
    const code = blocks.join("\n");
    const { CELLBLOCK_URL: url, CELLBLOCK_KEY: key } = process.env;
    // In the package's folder, where its own name leads to it.
    const file = new URL(`../dist/${unique("example")}.mjs`, import.meta.url);
    await writeFile(file, code.replace('{ url: "http://127.0.0.1:8080" }', JSON.stringify({ url, key })));
    try {
      const { stdout } = await promisify(execFile)(process.execPath, [file.pathname]);
      const expected = [...code.matchAll(/console\.log\(.*\);? +\/\/ (.*)$/gm)].map((it) => it[1]);
      assert.ok(expected.length > 1);
      assert.deepEqual(expected.filter((line) => !stdout.includes(line)), [], stdout);
    } finally {
      await rm(file);
    }
  });
}
