// What a client does with a server. Each function is one thing that has to work; `client` is either library's, for their calls are alike.

import assert from "node:assert/strict";

import { PATIENCE } from "./place.js";

const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

// The newer library has no schema between a call and its options.
export function calls(client, older) {
  return (name, args = {}, options = {}) => {
    const more = { timeout: PATIENCE, ...options };
    return older ? client.callTool({ name, arguments: args }, undefined, more) : client.callTool({ name, arguments: args }, more);
  };
}

function text(result) {
  return result.content.filter((block) => block.type === "text").map((block) => block.text).join("\n");
}

// The structured content of a call that succeeds. The libraries themselves validate it against the tool's schema.
async function done(call, name, args) {
  const result = await call(name, args);
  assert.ok(!result.isError, text(result));
  return result.structuredContent;
}

async function value(call, session, code) {
  return (await done(call, "run_python", { code, session_id: session })).outputs[0].value;
}

async function toolsHaveSchemas(client) {
  const { tools } = await client.listTools();
  const names = new Set(tools.map((tool) => tool.name));
  for (const name of ["run_python", "create_session", "upload_file", "close_session"]) assert.ok(names.has(name), name);
  for (const tool of tools) {
    assert.equal(tool.outputSchema?.type, "object", tool.name);
    assert.equal(typeof tool.annotations?.readOnlyHint, "boolean", tool.name);
  }
}

async function aTableIsStructuredContentAndTextWithItsUri(client, call) {
  const code = "import pandas as pd\nprint('printed')\npd.DataFrame({'a': [1, 2], 'b': ['x', None]})";
  const result = await call("run_python", { code });
  const ran = result.structuredContent;
  assert.equal(ran.outcome, "completed");
  assert.equal(ran.stdout, "printed\n");
  assert.deepEqual(ran.outputs[0].columns.map((column) => column.name), ["a", "b"]);
  assert.match(text(result), /printed/);
  assert.deepEqual(result.content.map((block) => block.type), ["text"]);
  const [{ uri }] = ran.outputs[0].resources;
  assert.ok(text(result).includes(uri));
  const { contents } = await client.readResource({ uri });
  assert.equal(Buffer.from(contents[0].blob, "base64").subarray(0, 4).toString(), "PAR1");
  const { resources } = await client.listResources();
  assert.ok(resources.some((resource) => resource.uri === uri));
  await done(call, "close_session", { session_id: ran.session_id });
}

async function aChartIsNamed(client, call) {
  const result = await call("run_python", { code: "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nNone" });
  assert.deepEqual(result.content.map((block) => block.type), ["text"]);
  const picture = result.structuredContent.outputs[0].resources.find((link) => link.media_type === "image/png");
  assert.ok(text(result).includes(picture.name));
  const { contents } = await client.readResource({ uri: picture.uri });
  assert.ok(Buffer.from(contents[0].blob, "base64").subarray(0, 8).equals(PNG));
  await done(call, "close_session", { session_id: result.structuredContent.session_id });
}

async function filesComeAndGo(client, call) {
  const { session_id: session } = await done(call, "create_session");
  await done(call, "upload_file", { session_id: session, path: "sales.csv", content: "region,revenue\nnorth,10.5\n" });
  const result = await call("run_python", { code: "open('out.csv', 'w').write(open('sales.csv').read().upper())", session_id: session });
  const link = result.structuredContent.files.find((file) => file.name === "out.csv");
  const { contents } = await client.readResource({ uri: link.uri });
  assert.equal(contents[0].text, "REGION,REVENUE\nNORTH,10.5\n");
  assert.equal((await done(call, "download_file", { session_id: session, path: "out.csv" })).text, contents[0].text);
  await done(call, "close_session", { session_id: session });
}

async function codeThatRaisesIsAnsweredAndTheSessionGoesOn(client, call) {
  const { session_id: session } = await done(call, "create_session");
  const result = await call("run_python", { code: "kept = 42\nkept.nothing", session_id: session });
  assert.ok(!result.isError);
  assert.equal(result.structuredContent.error.line, 2);
  assert.match(text(result), /^AttributeError: /);
  assert.equal(await value(call, session, "kept"), 42);
  await done(call, "close_session", { session_id: session });
}

async function whatIsNotThereIsAnError(client, call) {
  const uri = `cellblock://artifacts/${"0".repeat(64)}`;
  for (const ask of [() => call("no_such_tool"), () => client.readResource({ uri }), () => client.getPrompt({ name: "none" })]) {
    await assert.rejects(ask, (error) => [-32602, -32002].includes(error.code));
  }
  const unknown = await call("run_python", { code: "1", session_id: "nobodys" });
  assert.equal(unknown.isError, true);
  assert.match(text(unknown), /there is no session/);
}

async function whatIsPrintedIsToldMeanwhileAndACancelledCallStops(client, call) {
  const { session_id: session } = await done(call, "create_session");
  assert.equal(await value(call, session, "kept = 42\nkept"), 42);
  const stop = new AbortController();
  const heard = [];
  let told;
  const on = new Promise((resolve) => (told = resolve));
  const onprogress = (progress) => {
    heard.push(progress.progress);
    if (progress.message?.includes("on")) told();
  };
  const code = "import time\nprint('on', flush=True)\nwhile True: time.sleep(0.01)";
  const running = call("run_python", { code, session_id: session, timeout_seconds: 300 }, { onprogress, signal: stop.signal });
  running.catch(() => {});
  await on;
  stop.abort();
  await assert.rejects(running);
  assert.deepEqual(heard, [...new Set(heard)].sort((a, b) => a - b));
  // It waits for the turn of the one that was cancelled, which would be five minutes.
  assert.equal(await value(call, session, "kept"), 42);
  await done(call, "close_session", { session_id: session });
}

async function sessionsRunSideBySide(client, call) {
  const made = await Promise.all([done(call, "create_session"), done(call, "create_session")]);
  const sessions = made.map((one) => one.session_id);
  const code = (mine) => `import time; time.sleep(0.2); mine = '${mine}'; mine`;
  const said = await Promise.all(sessions.map((session, index) => value(call, session, code(index))));
  assert.deepEqual(said, ["0", "1"]);
  for (const session of sessions) await done(call, "close_session", { session_id: session });
  assert.deepEqual((await done(call, "list_sessions")).sessions, []);
}

async function promptsNameTheirSession(client, call) {
  const { prompts } = await client.listPrompts();
  assert.ok(prompts.some((prompt) => prompt.name === "interpreter"));
  const { session_id: session } = await done(call, "create_session");
  const { messages } = await client.getPrompt({ name: "interpreter", arguments: { session_id: session } });
  assert.ok(messages[0].content.text.includes(session));
  await done(call, "close_session", { session_id: session });
}

export const SCENARIOS = [
  toolsHaveSchemas, aTableIsStructuredContentAndTextWithItsUri, aChartIsNamed, filesComeAndGo, codeThatRaisesIsAnsweredAndTheSessionGoesOn,
  whatIsNotThereIsAnError, whatIsPrintedIsToldMeanwhileAndACancelledCallStops, sessionsRunSideBySide, promptsNameTheirSession,
];
