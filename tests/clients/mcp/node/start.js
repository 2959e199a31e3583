// Starts the command that it is given, as an agent starts its tools, runs a line of Python through it, and prints what came of it.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: "agent", version: "1" });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
const timeout = 120_000;
const { tools } = await client.listTools();
const ran = await client.callTool({ name: "run_python", arguments: { code: "6 * 7" } }, undefined, { timeout });
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), value: ran.structuredContent.outputs[0].value }));
await client.close();
