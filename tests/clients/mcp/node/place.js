// Where the server is: `CELLBLOCK_MCP_COMMAND`, a JSON array, is started; without it `CELLBLOCK_MCP_URL` is asked with `CELLBLOCK_KEY`.

const COMMAND = JSON.parse(process.env.CELLBLOCK_MCP_COMMAND ?? "[]");
const URL_OF_IT = process.env.CELLBLOCK_MCP_URL;
const KEY = process.env.CELLBLOCK_KEY ?? "";

// Longer than any answer takes on a busy machine: what waits so long hangs.
export const PATIENCE = 120_000;

// A transport of whichever library: the classes of one are given.
export function transport({ StdioClientTransport, StreamableHTTPClientTransport }, key = KEY) {
  if (COMMAND.length > 0) {
    const [command, ...args] = COMMAND;
    return new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" });
  }
  const headers = key === "" ? {} : { Authorization: `Bearer ${key}` };
  return new StreamableHTTPClientTransport(new URL(URL_OF_IT), { requestInit: { headers } });
}
