// openai-node and the AI SDK: commands of a shell, patches, tools that take a text, and deferred tools.

import assert from "node:assert/strict";
import { test } from "node:test";

import { createOpenAI } from "@ai-sdk/openai";
import { generateText, isStepCount } from "ai";
import OpenAI from "openai";

import { KEY, MODELS, PATIENCE, URL } from "./gateway.js";

const openai = new OpenAI({ baseURL: URL, apiKey: KEY, timeout: PATIENCE, maxRetries: 0 });
const provider = createOpenAI({ baseURL: URL, apiKey: KEY });
const ASKS = {
  "at once": (request) => openai.responses.create(request),
  streamed: (request) => openai.responses.stream(request).finalResponse(),
};
const AUTO = { type: "shell", environment: { type: "container_auto" } };
const LOCAL = { type: "shell", environment: { type: "local" } };

for (const model of MODELS) {
  for (const [how, ask] of Object.entries(ASKS)) {
    test(`${model} ${how}: each command has its own output`, async () => {
      const response = await ask({ model, input: "Count in a shell.", tools: [AUTO] });
      assert.equal(response.output_text, "There are 3.");
      const [call, output] = response.output;
      assert.deepEqual([call.type, output.type], ["shell_call", "shell_call_output"]);
      assert.match(call.environment.container_id, /^cntr_/);
      assert.deepEqual(output.output, [
        { stdout: "3\n", stderr: "end\n", outcome: { type: "exit", exit_code: 0 } },
        { stdout: "", stderr: "", outcome: { type: "exit", exit_code: 3 } },
      ]);
    });

    test(`${model} ${how}: a local command is answered by the client`, async () => {
      const first = await ask({ model, input: "List my folder.", tools: [LOCAL] });
      const [call] = first.output;
      assert.deepEqual([call.type, call.environment.type], ["shell_call", "local"]);
      const outcome = { type: "exit", exit_code: 0 };
      const input = [{ type: "shell_call_output", call_id: call.call_id, output: [{ stdout: "a.txt", stderr: "", outcome }] }];
      const second = await ask({ model, input, tools: [LOCAL], previous_response_id: first.id });
      assert.equal(second.output_text, "You have a.txt.");
    });

    test(`${model} ${how}: a patch and a text are handed to the client`, async () => {
      const patched = await ask({ model, input: "Patch my file.", tools: [{ type: "apply_patch" }] });
      assert.equal(patched.output[0].operation.diff, "@@\n-one\n+two\n");
      const planned = await ask({ model, input: "Plan in words.", tools: [{ type: "custom", name: "plan" }] });
      assert.deepEqual([planned.output[0].type, planned.output[0].input], ["custom_tool_call", "first rest"]);
    });

    test(`${model} ${how}: a deferred tool is found and called`, async () => {
      const mail = { type: "function", name: "send_mail", description: "Sends a mail.", strict: false, defer_loading: true };
      mail.parameters = { type: "object", properties: { to: { type: "string" } } };
      const office = { type: "namespace", name: "office", description: "Mail and letters.", tools: [mail] };
      const request = { model, tools: [{ type: "tool_search" }, office] };
      const first = await ask({ ...request, input: "Find a tool for mail." });
      const [search, found, call] = first.output;
      assert.deepEqual([search.type, search.execution, search.call_id], ["tool_search_call", "server", null]);
      assert.deepEqual([found.type, found.tools[0].tools[0].name], ["tool_search_output", "send_mail"]);
      assert.deepEqual([call.namespace, call.name], ["office", "send_mail"]);
      const input = [{ type: "function_call_output", call_id: call.call_id, output: "sent" }];
      const second = await ask({ ...request, input, previous_response_id: first.id });
      assert.equal(second.output_text, "Mail: sent");
    });
  }

  test(`${model}: the AI SDK finds the output of commands, and sends it back`, async () => {
    for (const store of [true, false]) {
      const tools = { shell: provider.tools.shell({ environment: { type: "containerAuto" } }) };
      const providerOptions = { openai: { store } };
      const ask = (messages) => generateText({ model: provider.responses(model), tools, messages, providerOptions });
      const said = [{ role: "user", content: "Count in a shell." }];
      const first = await ask(said);
      assert.equal(first.text, "There are 3.");
      assert.deepEqual(
        first.toolResults[0].output.output.map((output) => output.outcome),
        [{ type: "exit", exitCode: 0 }, { type: "exit", exitCode: 3 }],
      );
      const second = await ask([...said, ...first.response.messages, { role: "user", content: "Say hello." }]);
      assert.match(second.text, /^Hello!/);
    }
  });

  test(`${model}: the AI SDK applies a patch and answers a text`, async () => {
    const patches = [];
    const execute = async ({ operation }) => {
      patches.push(operation);
      return { status: "completed", output: "a.txt is changed" };
    };
    const result = await generateText({
      model: provider.responses(model),
      tools: { apply_patch: provider.tools.applyPatch({ execute }) },
      prompt: "Patch my file.",
      stopWhen: isStepCount(3),
    });
    assert.equal(result.text, "Patched: a.txt is changed");
    assert.deepEqual(patches, [{ type: "update_file", path: "a.txt", diff: "@@\n-one\n+two\n" }]);
  });
}
