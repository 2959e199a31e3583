// @anthropic-ai/sdk from npm: messages, code execution, files, tools that code calls, errors.

import assert from "node:assert/strict";
import { test } from "node:test";

import Anthropic, { toFile } from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: process.env.CELLBLOCK_URL, apiKey: "none", maxRetries: 0 });
const PYTHON = { type: "code_execution_20250522", name: "code_execution" };
const REPL = { type: "code_execution_20260120", name: "code_execution" };
const PRICE = {
  name: "get_price",
  description: "Returns a price.",
  input_schema: { type: "object", properties: { symbol: { type: "string" } }, required: ["symbol"] },
  allowed_callers: ["code_execution_20260120"],
};

function asking(content, more = {}) {
  const { history = [], ...fields } = more;
  return { model: "m", max_tokens: 1000, messages: [...history, { role: "user", content }], ...fields };
}

const BOTH = {
  whole: (content, more) => client.messages.create(asking(content, more)),
  streamed: (content, more) => client.messages.stream(asking(content, more)).finalMessage(),
};

for (const [how, ask] of Object.entries(BOTH)) {
  test(`a text is answered, ${how}`, async () => {
    const message = await ask("Say hello.");
    assert.equal(message.content[0].text, "Hello, Ada.");
    assert.equal(message.stop_reason, "end_turn");
  });

  test(`Python runs and its variables are kept, ${how}`, async () => {
    const first = await ask("Remember x.", { tools: [REPL] });
    const history = [
      { role: "user", content: "Remember x." },
      { role: "assistant", content: first.content },
    ];
    const second = await ask("Recall x.", { history, tools: [REPL], container: first.container.id });
    const [used, result] = second.content;
    assert.deepEqual(used.input, { code: "print(x + 1)" });
    assert.equal(result.tool_use_id, used.id);
    assert.equal(result.content.stdout, "42\n");
    assert.equal(second.container.id, first.container.id);
  });

  test(`code calls a tool of the client, ${how}`, async () => {
    const first = await ask("What is the price?", { tools: [REPL, PRICE] });
    const [code, call] = first.content;
    assert.equal(first.stop_reason, "tool_use");
    assert.deepEqual(call.caller, { type: "code_execution_20260120", tool_id: code.id });
    const history = [
      { role: "user", content: "What is the price?" },
      { role: "assistant", content: first.content },
    ];
    const answer = [{ type: "tool_result", tool_use_id: call.id, content: '{"usd": 42}' }];
    const second = await ask(answer, { history, tools: [REPL, PRICE], container: first.container.id });
    assert.equal(second.content[0].content.stdout, "84\n");
    assert.equal(second.content[1].text, "It is 84.");
  });
}

test("a skill is read after a wrong guess", async () => {
  const files = {
    "greeter/SKILL.md": "---\nname: greeter\ndescription: Greets.\n---\nRun greet.sh.\n",
    "greeter/greet.sh": "echo hello from a skill\n",
  };
  const parts = Object.entries(files).map(([name, text]) => toFile(Buffer.from(text), name));
  const skill = await client.skills.create({ files: await Promise.all(parts), display_name: "Greeter" });
  const tools = [{ type: "code_execution_20250825", name: "code_execution" }];
  const container = { skills: [{ type: "custom", skill_id: skill.id }] };
  for (const ask of Object.values(BOTH)) {
    const message = await ask("Use the skill.", { tools, container });
    const [, guess, , read, text] = message.content;
    assert.deepEqual([guess.content.return_code, text.text], [1, "Greeted."]);
    assert.match(read.content.stdout, /Run greet\.sh\.\nhello from a skill/);
    assert.equal(message.container.skills[0].skill_id, skill.id);
  }
  await client.skills.delete(skill.id);
});

test("files go in and out", async () => {
  const file = await client.beta.files.upload({ file: await toFile(Buffer.from("abc"), "in.txt") });
  const upload = { type: "container_upload", file_id: file.id };
  const message = await BOTH.whole([{ type: "text", text: "Shout." }, upload], { tools: [PYTHON] });
  const made = message.content[1].content.content[0].file_id;
  const answer = await client.beta.files.download(made);
  assert.equal(await answer.text(), "ABC");
  await client.beta.files.delete(file.id);
});

test("errors are those that the client knows", async () => {
  await assert.rejects(BOTH.whole("Hello", { max_tokens: 0 }), Anthropic.BadRequestError);
  await assert.rejects(
    BOTH.whole("Say hello.", { tools: [PYTHON], container: "cntr_none" }),
    Anthropic.NotFoundError,
  );
  await assert.rejects(BOTH.whole("Fail."), Anthropic.InternalServerError);
  await assert.rejects(BOTH.streamed("Fail."), Anthropic.APIError);
});
