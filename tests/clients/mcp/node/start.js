// Reaches a server as an agent's configuration says, `{command, args}` or `{url, headers}`, runs a line of Python through it, and prints what came of it.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const { command, args, url, headers } = JSON.parse(process.argv[2]);
const transport = command === undefined
  ? new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })
  : new StdioClientTransport({ command, args, env: process.env });
const client = new Client({ name: "agent", version: "1" });
await client.connect(transport);
const { tools } = await client.listTools();
const call = { name: "run_python", arguments: { code: "6 * 7" } };
const ran = await client.callTool(call, undefined, { timeout: 120_000 });
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), value: ran.structuredContent.outputs[0].value }));
await client.close();
