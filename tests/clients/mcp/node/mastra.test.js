// Mastra's agent with its client of MCP, which shows the model the structured content alone.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { test } from "node:test";

import { createOpenAI } from "@ai-sdk/openai";
import { Agent } from "@mastra/core/agent";
import { MCPClient } from "@mastra/mcp";

const URL_OF_IT = process.env.CELLBLOCK_MCP_URL ?? "http://127.0.0.1:8080/mcp";
const KEY = process.env.CELLBLOCK_KEY ?? "";
// What stands in the result of each call.
const WANTED = [
  ["notes.txt", "cellblock://artifacts/", "session_id"],
  ["north", "25", ".parquet", "cellblock://artifacts/"],
  [".png", "cellblock://artifacts/"],
  ["NameError: name 'absent' is not defined"],
  ["42"],
];

test("an agent goes through the script", async () => {
  const model = spawn("python3", ["../frameworks/model.py"], { stdio: ["pipe", "pipe", "inherit"] });
  const [url] = await once(createInterface({ input: model.stdout }), "line");
  const requestInit = KEY === "" ? {} : { headers: { Authorization: `Bearer ${KEY}` } };
  const client = new MCPClient({ timeout: 120_000, servers: { cellblock: { url: new URL(URL_OF_IT), requestInit } } });
  try {
    const openai = createOpenAI({ baseURL: url, apiKey: "none" });
    const agent = new Agent({ id: "agent", name: "agent", instructions: "", model: openai.chat("scripted"), tools: await client.listTools() });
    const said = await agent.generate("Do what has to be done.", { maxSteps: 10 });
    const { shown } = await (await fetch(`${url}/shown`)).json();
    assert.equal(shown.length, WANTED.length, JSON.stringify(shown));
    shown.forEach((text, step) => {
      for (const part of WANTED[step]) assert.ok(text.includes(part), `${part} in ${text}`);
      assert.ok(text.length < 8000);
    });
    assert.match(said.text, /42/);
  } finally {
    await client.disconnect();
    model.stdin.end();
  }
});
