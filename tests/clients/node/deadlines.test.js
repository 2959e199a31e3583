// Code that takes longer than it may, as each client of Node sees it. The gateway of these tests gives it two seconds.

import assert from "node:assert/strict";
import { test } from "node:test";

import { createOpenAI } from "@ai-sdk/openai";
import { streamText } from "ai";
import OpenAI from "openai";

import { KEY, MODELS, PATIENCE, URL, logs } from "./gateway.js";

for (const model of MODELS) {
  test(`openai-node, ${model}: the item is incomplete, and the model goes on`, async () => {
    const openai = new OpenAI({ baseURL: URL, apiKey: KEY, timeout: PATIENCE, maxRetries: 0 });
    const tools = [{ type: "code_interpreter", container: { type: "auto" } }];
    const include = ["code_interpreter_call.outputs"];
    const response = await openai.responses.stream({ model, input: "Sleep.", tools, include }).finalResponse();
    const [call] = response.output;
    assert.equal(call.status, "incomplete");
    assert.match(logs(call.outputs), /before\n/);
    assert.equal(response.output_text, "It took too long.");
  });

  test(`AI SDK, ${model}: the call has a result, and the model goes on`, async () => {
    const provider = createOpenAI({ baseURL: URL, apiKey: KEY });
    const tools = { code_interpreter: provider.tools.codeInterpreter() };
    const result = streamText({ model: provider.responses(model), tools, prompt: "Sleep." });
    assert.equal(await result.text, "It took too long.");
    const [ran] = await result.toolResults;
    assert.match(logs(ran.output.outputs), /before\n/);
  });
}
