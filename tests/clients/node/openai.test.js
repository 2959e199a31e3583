// openai-node. Its `responses.stream()` is the strictest reader: it throws at an event that it does not know.

import assert from "node:assert/strict";
import { test } from "node:test";

import OpenAI, { APIUserAbortError, AuthenticationError, BadRequestError, NotFoundError, toFile } from "openai";

import {
  ANALYSIS, HELLO, KEY, MODELS, PATIENCE, SALES, TOTALS, URL, WEATHER, assertInterrupted, assertPicture, logs, until,
} from "./gateway.js";

const openai = new OpenAI({ baseURL: URL, apiKey: KEY, timeout: PATIENCE, maxRetries: 0 });
const include = ["code_interpreter_call.outputs"];
const ASKS = {
  "at once": (request) => openai.responses.create(request),
  streamed: (request) => openai.responses.stream(request).finalResponse(),
};

function interpreter(container = { type: "auto" }) {
  return { type: "code_interpreter", container };
}

function calls(response) {
  return response.output.filter((item) => item.type === "code_interpreter_call");
}

for (const model of MODELS) {
  for (const [how, ask] of Object.entries(ASKS)) {
    test(`${model} ${how}: a plain answer is whole`, async () => {
      const response = await ask({ model, input: "Say hello." });
      assert.equal(response.status, "completed");
      assert.equal(response.output_text, HELLO);
    });

    test(`${model} ${how}: an uploaded table becomes a chart and a file`, async () => {
      const file = await openai.files.create({
        file: await toFile(Buffer.from(SALES), "sales.csv"),
        purpose: "user_data",
      });
      const tools = [interpreter({ type: "auto", file_ids: [file.id] })];
      const response = await ask({ model, input: "Analyse sales.csv.", tools, include });
      assert.equal(response.output_text, ANALYSIS);
      const [read, drawn] = calls(response);
      assert.equal(logs(read.outputs), "{'north': 30.5, 'south': 20.0}\n");
      await assertPicture(drawn.outputs);
      const citations = response.output.at(-1).content[0].annotations;
      const cited = citations.find((note) => note.filename === "totals.csv");
      assert.equal(cited.type, "container_file_citation");
      const content = await openai.containers.files.content.retrieve(cited.file_id, {
        container_id: cited.container_id,
      });
      assert.equal(await content.text(), TOTALS);
    });

    test(`${model} ${how}: an exception is repaired`, async () => {
      const response = await ask({ model, input: "Divide by zero.", tools: [interpreter()], include });
      assert.equal(response.output_text, "Now: repaired 1.0");
      const [raised, repaired] = calls(response);
      assert.match(logs(raised.outputs), /before[^]*ZeroDivisionError: division by zero/);
      assert.equal(logs(repaired.outputs), "repaired 1.0\n");
    });

    test(`${model} ${how}: a function is handed back, and its result answered`, async () => {
      const tools = [{ type: "function", name: "get_weather", parameters: WEATHER, strict: true }];
      const first = await ask({ model, input: "What is the weather in Rome?", tools });
      const [call] = first.output;
      assert.deepEqual([call.type, call.name, call.arguments], ["function_call", "get_weather", '{"city": "Rome"}']);
      const input = [{ type: "function_call_output", call_id: call.call_id, output: "sunny" }];
      const second = await ask({ model, input, tools, previous_response_id: first.id });
      assert.equal(second.output_text, "In Rome it is sunny.");
    });

    test(`${model} ${how}: two calls at once both come back`, async () => {
      const response = await ask({ model, input: "Two at once.", tools: [interpreter()], include });
      assert.deepEqual(calls(response).map((call) => logs(call.outputs)).sort(), ["first\n", "second\n"]);
      assert.equal(response.output_text, "first and second");
    });
  }

  test(`${model}: a provider that fails or is cut off ends the response, and says so`, async () => {
    for (const [input, message] of [["Refuse.", /the prompt is too long/], ["Break off.", /./]]) {
      await assert.rejects(openai.responses.create({ model, input }), message);
      await assert.rejects(async () => {
        for await (const event of openai.responses.stream({ model, input })) assert.notEqual(event.type, "response.completed");
      }, message);
    }
  });

  test(`${model}: the stream tells the code, piece by piece`, async () => {
    const stream = openai.responses.stream({ model, input: "Remember forty-two.", tools: [interpreter()] });
    let code = "";
    const kinds = new Set();
    for await (const event of stream) {
      kinds.add(event.type);
      if (event.type === "response.code_interpreter_call_code.delta") code += event.delta;
    }
    assert.equal(code, "kept = 42");
    for (const kind of ["in_progress", "interpreting", "completed"]) {
      assert.ok(kinds.has(`response.code_interpreter_call.${kind}`), kind);
    }
  });

  test(`${model}: a stream that is aborted interrupts its code`, async () => {
    const breakOff = async (delay) => {
      const container = await openai.containers.create({ name: "aborted" });
      const tools = [interpreter(container.id)];
      const stream = openai.responses.stream({ model, input: "Run for ever.", tools });
      stream.on("response.code_interpreter_call.interpreting", () => setTimeout(() => stream.abort(), delay));
      await assert.rejects(stream.done(), APIUserAbortError);
      return tools;
    };
    await assertInterrupted(breakOff, async (tools) => {
      const timeout = PATIENCE / 2;
      return (await openai.responses.create({ model, input: "What was there?", tools }, { timeout })).output_text;
    });
  });

  test(`${model}: a response in the background is followed from where it was`, async () => {
    const made = await openai.responses.create({ model, input: "Divide by zero.", tools: [interpreter()], background: true });
    await until(async () => (await openai.responses.retrieve(made.id)).status === "completed");
    const events = await Array.fromAsync(await openai.responses.retrieve(made.id, { stream: true, starting_after: 3 }));
    assert.equal(events[0].sequence_number, 4);
    assert.equal(events.at(-1).type, "response.completed");
    const followed = await openai.responses.stream({ response_id: made.id }).finalResponse();
    assert.equal(followed.output_text, "Now: repaired 1.0");
  });
}

test("what is refused is told in the SDK's own errors", async () => {
  const [model] = MODELS;
  await assert.rejects(openai.responses.create({ model: "no-such-model", input: "x" }), (error) => {
    return error instanceof NotFoundError && error.code === "model_not_found" && error.param === "model";
  });
  await assert.rejects(openai.responses.create({ model, input: "x", temperature: 3 }), (error) => {
    return error instanceof BadRequestError && error.param === "temperature";
  });
  await assert.rejects(openai.responses.create({ model, input: "x".repeat(17 << 20) }), { status: 413 });
  const stranger = new OpenAI({ baseURL: URL, apiKey: "cbk_wrong", maxRetries: 0 });
  await assert.rejects(stranger.responses.create({ model, input: "x" }), AuthenticationError);
});
