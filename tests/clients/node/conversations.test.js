// Two turns of one conversation in one sandbox, with the history sent as each framework does by default.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { createOpenAI } from "@ai-sdk/openai";
import { Agent } from "@mastra/core/agent";
import { InMemoryStore } from "@mastra/core/storage";
import { Memory } from "@mastra/memory";
import { generateText, streamText } from "ai";

import { FIRST_TURN, KEY, MODELS, SECOND_TURN, SUM, URL } from "./gateway.js";

/** A provider, and the items of every request that it sends. */
function provider() {
  const sent = [];
  const recording = (url, options) => {
    sent.push(JSON.parse(options.body).input.map((item) => item.type ?? item.role));
    return fetch(url, options);
  };
  return { openai: createOpenAI({ baseURL: URL, apiKey: KEY, fetch: recording }), sent };
}

async function streamed(request) {
  const failures = [];
  const result = streamText({ ...request, onError: ({ error }) => failures.push(error) });
  await result.consumeStream();
  assert.deepEqual(failures, []);
  return { text: await result.text, response: await result.response };
}

for (const name of MODELS) {
  for (const [how, ask] of Object.entries({ "at once": generateText, streamed })) {
    const converse = async (providerOptions) => {
      const { openai, sent } = provider();
      const [model, tools] = [openai.responses(name), { code_interpreter: openai.tools.codeInterpreter() }];
      const messages = [{ role: "user", content: FIRST_TURN }];
      const first = await ask({ model, tools, messages, providerOptions });
      messages.push(...first.response.messages, { role: "user", content: SECOND_TURN });
      const second = await ask({ model, tools, messages, providerOptions });
      return { text: second.text, sent: sent.at(-1) };
    };

    test(`${name} ${how}: the AI SDK refers to the items of the first turn, and the variable is there`, async () => {
      const { text, sent } = await converse();
      assert.ok(sent.includes("item_reference"), sent);
      assert.equal(text, SUM);
    });

    test(`${name} ${how}: without stored responses a key of the conversation finds its sandbox`, async () => {
      const { text, sent } = await converse({ openai: { store: false, promptCacheKey: randomUUID() } });
      assert.deepEqual(sent, ["user", "assistant", "user"]);
      assert.equal(text, SUM);
    });
  }

  test(`${name}: an agent of Mastra with a memory finds the variable of its thread`, async () => {
    const { openai, sent } = provider();
    const agent = new Agent({
      id: "analyst",
      name: "analyst",
      instructions: "Compute with Python.",
      model: openai.responses(name),
      tools: { code_interpreter: openai.tools.codeInterpreter() },
      memory: new Memory({ storage: new InMemoryStore() }),
    });
    const ways = {
      "at once": async (said, options) => (await agent.generate(said, options)).text,
      streamed: async (said, options) => (await agent.stream(said, options)).text,
    };
    for (const [how, ask] of Object.entries(ways)) {
      const memory = { thread: how, resource: "somebody" };
      await ask(FIRST_TURN, { memory });
      const said = await ask(SECOND_TURN, { memory });
      assert.ok(sent.at(-1).includes("item_reference"), sent.at(-1));
      assert.equal(said, SUM, how);
    }
  });
}
