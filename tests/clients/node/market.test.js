// Tools of a server, and code that derives from what they gave, as each client of Node sees them.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";

import { createOpenAI } from "@ai-sdk/openai";
import { APICallError, generateText, streamText } from "ai";
import OpenAI, { BadRequestError } from "openai";

import { KEY, MODELS, PATIENCE, URL as BASE } from "./gateway.js";
import { FLOWS, PRICES } from "./market.js";

const TOOLS = process.env.CELLBLOCK_TOOLS;
const NOT_ALLOWED = "http://127.0.0.1:1/mcp";
const QUESTION = "Draw the price and flow of ACME.";
const ANSWER = "Over 90 days they move together.";
const THEN = "How many numbers were that?";
const COUNTED = "That was 180 numbers.";
const FAILING = "What are the balances of ACME?";
const FAILURE = /nobody tells the balances of ACME/;
const WHICH = "Which tools are there?";

const openai = new OpenAI({ baseURL: BASE, apiKey: KEY, timeout: PATIENCE, maxRetries: 0 });
const provider = createOpenAI({ baseURL: BASE, apiKey: KEY });
const include = ["code_interpreter_call.outputs"];
const interpreter = { type: "code_interpreter", container: { type: "auto" } };

/** The server as a request names it by its address. */
function market(more) {
  return { type: "mcp", server_label: "market", server_url: TOOLS, require_approval: "never", ...more };
}

/** The server in the words of the AI SDK. */
function tools(more) {
  return {
    market: provider.tools.mcp({ serverLabel: "market", serverUrl: TOOLS, requireApproval: "never", ...more }),
    code_interpreter: provider.tools.codeInterpreter(),
  };
}

/** What an address of the gateway gives, which is what its hash says. */
async function whole({ url, sha256 }) {
  const answer = await fetch(new URL(url, BASE), { headers: { Authorization: `Bearer ${KEY}` } });
  assert.equal(answer.status, 200);
  const bytes = Buffer.from(await answer.arrayBuffer());
  assert.equal(createHash("sha256").update(bytes).digest("hex"), sha256);
  return bytes;
}

/** The picture is the one that is told, and the dataset holds both series. */
async function assertReport(report) {
  assert.deepEqual([report.outcome, report.gaps, report.derivations], ["answer", [], 2]);
  const [artifact, ...others] = report.artifacts;
  assert.deepEqual([artifact.kind, artifact.title, others], ["image", "ACME", []]);
  assert.equal((await whole(artifact)).subarray(0, 8).toString("latin1"), "\x89PNG\r\n\x1a\n");
  const dataset = JSON.parse(await whole(report.dataset));
  assert.deepEqual(dataset.aliases.get_price_history_1, PRICES);
  assert.deepEqual(dataset.aliases.get_net_flow_1, FLOWS);
  assert.equal(dataset.result.rows, PRICES.length);
}

const ASKS = {
  "at once": (request) => openai.responses.create(request),
  streamed: (request) => openai.responses.stream(request).finalResponse(),
};

for (const model of MODELS) {
  for (const [how, ask] of Object.entries(ASKS)) {
    const store = how === "at once";

    test(`openai-node, ${model} ${how}: series are fetched and derived from with a repair, and the conversation goes on`, async () => {
      const server = store ? { ...market(), server_url: undefined } : market();
      const request = { model, tools: [server, interpreter], include, store };
      const first = await ask({ ...request, input: QUESTION, metadata: { chart_intent: "explicit" } });
      assert.deepEqual([first.status, first.output_text], ["completed", ANSWER]);
      const [listed, prices, flows, failed, repaired, message] = first.output;
      assert.deepEqual(
        first.output.map((item) => item.type),
        ["mcp_list_tools", "mcp_call", "mcp_call", "code_interpreter_call", "code_interpreter_call", "message"],
      );
      assert.deepEqual(
        listed.tools.map((tool) => tool.name),
        ["get_price_history", "get_net_flow", "get_balances"],
      );
      assert.deepEqual([prices.status, prices.name, JSON.parse(prices.output)], ["completed", "get_price_history", PRICES]);
      assert.deepEqual([flows.status, flows.name, JSON.parse(flows.output)], ["completed", "get_net_flow", FLOWS]);
      assert.deepEqual([failed.status, repaired.status, message.status], ["failed", "completed", "completed"]);
      const pictures = (call) => call.outputs.filter((output) => output.type === "image").length;
      assert.deepEqual([pictures(failed), pictures(repaired)], [0, 1]);
      await assertReport(first.cellblock);
      const goesOn = store
        ? { input: THEN, previous_response_id: first.id }
        : { input: [{ role: "user", content: QUESTION }, ...first.output, { role: "user", content: THEN }] };
      assert.equal((await ask({ ...request, ...goesOn })).output_text, COUNTED);
    });

    test(`openai-node, ${model} ${how}: a tool that fails says why`, async () => {
      const response = await ask({ model, input: FAILING, tools: [market()] });
      const [, call] = response.output;
      assert.deepEqual([call.type, call.status, call.output], ["mcp_call", "failed", null]);
      assert.equal(call.error.type, "mcp_tool_execution_error");
      assert.match(call.error.content[0].text, FAILURE);
      assert.match(response.output_text, FAILURE);
    });

    test(`openai-node, ${model} ${how}: a request says which tools may be called, of a server that is allowed`, async () => {
      const response = await ask({ model, input: WHICH, tools: [market({ allowed_tools: ["get_net_flow"] })] });
      assert.equal(response.output_text, "get_net_flow");
      await assert.rejects(ask({ model, input: WHICH, tools: [market({ server_url: NOT_ALLOWED })] }), (error) => {
        const told = [error instanceof BadRequestError, error.code, error.param];
        assert.deepEqual(told, [true, "server_not_allowed", "tools[0].server_url"]);
        return true;
      });
    });
  }
}

/** A stream's end in the form of an answer at once; what the stream could not read is an error. */
async function streamed(request) {
  const failures = [];
  const result = streamText({ ...request, onError: ({ error }) => failures.push(error) });
  await result.consumeStream();
  if (failures.length > 0) throw failures[0];
  const [text, steps, toolCalls, toolResults, response] = await Promise.all([
    result.text, result.steps, result.toolCalls, result.toolResults, result.response,
  ]);
  return { text, steps, toolCalls, toolResults, response };
}

for (const name of MODELS) {
  const model = provider.responses(name);
  for (const [how, ask] of Object.entries({ "at once": generateText, streamed })) {
    test(`AI SDK, ${name} ${how}: series are fetched and derived from with a repair, and the conversation goes on`, async () => {
      const first = await ask({ model, tools: tools(), prompt: QUESTION });
      assert.equal(first.text, ANSWER);
      assert.deepEqual(
        first.toolCalls.map((call) => call.toolName),
        ["mcp.get_price_history", "mcp.get_net_flow", "code_interpreter", "code_interpreter"],
      );
      const [prices, flows, failed, repaired] = first.toolResults.map((result) => result.output);
      assert.deepEqual([prices.serverLabel, JSON.parse(prices.output)], ["market", PRICES]);
      assert.deepEqual([flows.serverLabel, JSON.parse(flows.output)], ["market", FLOWS]);
      const pictures = ({ outputs }) => outputs.filter((output) => output.type === "image").length;
      assert.deepEqual([pictures(failed), pictures(repaired)], [0, 1]);
      const { responseId } = first.steps[0].providerMetadata.openai;
      await assertReport((await openai.responses.retrieve(responseId)).cellblock);
      if (how === "at once") {
        const providerOptions = { openai: { previousResponseId: responseId } };
        assert.equal((await ask({ model, tools: tools(), prompt: THEN, providerOptions })).text, COUNTED);
      } else {
        const { messages } = first.response;
        const said = [{ role: "user", content: QUESTION }, ...messages, { role: "user", content: THEN }];
        assert.equal((await ask({ model, tools: tools(), messages: said })).text, COUNTED);
      }
    });

    test(`AI SDK, ${name} ${how}: a tool that fails says why`, async () => {
      const result = await ask({ model, tools: tools(), prompt: FAILING });
      assert.match(JSON.stringify(result.toolResults[0].output.error), FAILURE);
      assert.match(result.text, FAILURE);
    });

    test(`AI SDK, ${name} ${how}: a request says which tools may be called, of a server that is allowed`, async () => {
      const { market } = tools({ allowedTools: ["get_net_flow"] });
      assert.equal((await ask({ model, tools: { market }, prompt: WHICH })).text, "get_net_flow");
      await assert.rejects(ask({ model, tools: tools({ serverUrl: NOT_ALLOWED }), prompt: WHICH, maxRetries: 0 }), (error) => {
        const told = [APICallError.isInstance(error), error.statusCode, JSON.parse(error.responseBody).error.code];
        assert.deepEqual(told, [true, 400, "server_not_allowed"]);
        return true;
      });
    });
  }
}
