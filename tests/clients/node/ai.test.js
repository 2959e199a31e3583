// The Vercel AI SDK. It checks every event and item against closed schemas, and drops what it does not know.

import assert from "node:assert/strict";
import { test } from "node:test";

import { createOpenAI } from "@ai-sdk/openai";
import { APICallError, generateText, isStepCount, jsonSchema, streamText, tool, uploadFile } from "ai";

import {
  ANALYSIS, HELLO, KEY, MODELS, PATIENCE, SALES, TOTALS, URL, WEATHER, assertInterrupted, assertPicture, logs,
} from "./gateway.js";

const provider = createOpenAI({ baseURL: URL, apiKey: KEY });
const headers = { Authorization: `Bearer ${KEY}` };

/** A stream's end in the form of an answer at once; what the stream could not read is an error. */
async function streamed(request) {
  const failures = [];
  const result = streamText({ ...request, onError: ({ error }) => failures.push(error) });
  const parts = await Array.fromAsync(result.fullStream);
  assert.deepEqual(failures, []);
  const [text, finishReason, steps, toolCalls, toolResults, sources] = await Promise.all([
    result.text, result.finishReason, result.steps, result.toolCalls, result.toolResults, result.sources,
  ]);
  return { text, finishReason, steps, toolCalls, toolResults, sources, parts };
}

const ASKS = { "at once": generateText, streamed };

function interpreter(container) {
  return { code_interpreter: provider.tools.codeInterpreter(container && { container }) };
}

for (const name of MODELS) {
  const model = provider.responses(name);

  for (const [how, ask] of Object.entries(ASKS)) {
    test(`${name} ${how}: a plain answer is whole`, async () => {
      const result = await ask({ model, prompt: "Say hello." });
      assert.deepEqual([result.text, result.finishReason], [HELLO, "stop"]);
    });

    test(`${name} ${how}: an uploaded table becomes a chart and a file`, async () => {
      const file = await uploadFile({
        api: provider.files(),
        data: new TextEncoder().encode(SALES),
        mediaType: "text/csv",
        filename: "sales.csv",
      });
      const tools = interpreter({ fileIds: [file.providerReference.openai] });
      const result = await ask({ model, tools, prompt: "Analyse sales.csv." });
      assert.equal(result.text, ANALYSIS);
      const [read, drawn] = result.toolResults.map((ran) => ran.output.outputs);
      assert.equal(logs(read), "{'north': 30.5, 'south': 20.0}\n");
      await assertPicture(drawn);
      const cited = result.sources.find((source) => source.filename === "totals.csv");
      const { containerId, fileId } = cited.providerMetadata.openai;
      const content = await fetch(`${URL}/containers/${containerId}/files/${fileId}/content`, { headers });
      assert.equal(await content.text(), TOTALS);
    });

    test(`${name} ${how}: an exception is repaired`, async () => {
      const result = await ask({ model, tools: interpreter(), prompt: "Divide by zero." });
      assert.equal(result.text, "Now: repaired 1.0");
      assert.deepEqual(
        result.toolCalls.map((call) => call.input.code),
        ["print('before')\n1 / 0", "print('repaired', 1 / 1)"],
      );
      const [raised, repaired] = result.toolResults.map((ran) => logs(ran.output.outputs));
      assert.match(raised, /before[^]*ZeroDivisionError: division by zero/);
      assert.equal(repaired, "repaired 1.0\n");
    });

    test(`${name} ${how}: a function of the client is called, and its result answered`, async () => {
      const get_weather = tool({
        inputSchema: jsonSchema(WEATHER),
        execute: ({ city }) => (city === "Rome" ? "sunny" : "unknown"),
      });
      const tools = { get_weather, ...interpreter() };
      const result = await ask({ model, tools, prompt: "What is the weather in Rome?", stopWhen: isStepCount(3) });
      assert.equal(result.text, "In Rome it is sunny.");
      assert.equal(result.steps.length, 2);
    });

    test(`${name} ${how}: two calls at once both come back`, async () => {
      const result = await ask({ model, tools: interpreter(), prompt: "Two at once." });
      assert.deepEqual(result.toolResults.map((ran) => logs(ran.output.outputs)).sort(), ["first\n", "second\n"]);
      assert.equal(result.text, "first and second");
    });

    test(`${name} ${how}: a conversation goes on from the response before`, async () => {
      const first = await ask({ model, prompt: "My name is Ada." });
      const previousResponseId = first.steps[0].providerMetadata.openai.responseId;
      const providerOptions = { openai: { previousResponseId } };
      assert.equal((await ask({ model, prompt: "What is my name?", providerOptions })).text, "Ada");
    });
  }

  test(`${name}: a provider that fails or is cut off ends the response, and says so`, async () => {
    for (const [prompt, message] of [["Refuse.", /the prompt is too long/], ["Break off.", /./]]) {
      await assert.rejects(generateText({ model, prompt, maxRetries: 0 }), (error) => {
        return !/Invalid JSON/.test(error.message) && message.test(error.message);
      });
      await assert.rejects(streamed({ model, prompt, maxRetries: 0 }));
    }
  });

  test(`${name}: the code comes piece by piece, before its result`, async () => {
    const { parts } = await streamed({ model, tools: interpreter(), prompt: "Remember forty-two." });
    const kinds = parts.map((part) => part.type);
    const deltas = parts.filter((part) => part.type === "tool-input-delta").map((part) => part.delta);
    assert.equal(JSON.parse(deltas.join("")).code, "kept = 42");
    assert.ok(kinds.indexOf("tool-call") < kinds.indexOf("tool-result"));
  });

  test(`${name}: a stream that is aborted interrupts its code`, async () => {
    const breakOff = async (delay) => {
      const made = await fetch(`${URL}/containers`, {
        method: "POST",
        headers: { ...headers, "Content-Type": "application/json" },
        body: JSON.stringify({ name: "aborted" }),
      });
      const tools = interpreter((await made.json()).id);
      const abort = new AbortController();
      const result = streamText({
        model, tools, prompt: "Run for ever.", abortSignal: abort.signal, includeRawChunks: true, onError: () => {},
      });
      for await (const part of result.fullStream) {
        if (part.rawValue?.type === "response.code_interpreter_call.interpreting") setTimeout(() => abort.abort(), delay);
      }
      return tools;
    };
    await assertInterrupted(breakOff, async (tools) => {
      const abortSignal = AbortSignal.timeout(PATIENCE / 2);
      return (await generateText({ model, tools, prompt: "What was there?", abortSignal })).text;
    });
  });
}

test("what is refused is told in the SDK's own errors", async () => {
  const ask = (model, from = provider) => generateText({ model: from.responses(model), prompt: "x", maxRetries: 0 });
  const refused = (status) => (error) => APICallError.isInstance(error) && error.statusCode === status;
  await assert.rejects(ask("no-such-model"), refused(404));
  await assert.rejects(ask(MODELS[0], createOpenAI({ baseURL: URL, apiKey: "cbk_wrong" })), refused(401));
});
