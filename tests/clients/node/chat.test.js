// Chat Completions: the AI SDK's chat models, and Mastra's router, which speaks nothing else to a server that it does not know.

import assert from "node:assert/strict";
import { test } from "node:test";

import { createOpenAI } from "@ai-sdk/openai";
import { Agent } from "@mastra/core/agent";
import { generateText, isStepCount, jsonSchema, streamText, tool } from "ai";

import { HELLO, KEY, MODELS, URL, WEATHER } from "./gateway.js";

const get_weather = tool({
  id: "get_weather",
  description: "Tells the weather of a city.",
  inputSchema: jsonSchema(WEATHER),
  execute: ({ city }) => (city === "Rome" ? "sunny" : "unknown"),
});

async function streamed(request) {
  const failures = [];
  const result = streamText({ ...request, onError: ({ error }) => failures.push(error) });
  await result.consumeStream();
  assert.deepEqual(failures, []);
  return { text: await result.text, finishReason: await result.finishReason };
}

for (const name of MODELS) {
  for (const [how, ask] of Object.entries({ "at once": generateText, streamed })) {
    test(`${name} ${how}: a chat model of the AI SDK answers and calls a function`, async () => {
      const model = createOpenAI({ baseURL: URL, apiKey: KEY }).chat(name);
      const hello = await ask({ model, prompt: "Say hello." });
      assert.deepEqual([hello.text, hello.finishReason], [HELLO, "stop"]);
      const prompt = "What is the weather in Rome?";
      assert.equal((await ask({ model, prompt, tools: { get_weather }, stopWhen: isStepCount(3) })).text, "In Rome it is sunny.");
    });
  }

  test(`${name}: Mastra's router answers and calls a function`, async () => {
    const model = { id: `cellblock/${name}`, url: URL, apiKey: KEY };
    const agent = new Agent({ id: "router", name: "router", instructions: "Help.", model, tools: { get_weather } });
    assert.equal((await agent.generate("Say hello.")).text, HELLO);
    assert.equal(await (await agent.stream("Say hello.")).text, HELLO);
    assert.equal((await agent.generate("What is the weather in Rome?")).text, "In Rome it is sunny.");
  });
}
