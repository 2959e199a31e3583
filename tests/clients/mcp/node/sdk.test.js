// The client of the older library, which most agents on a desktop have inside: it knows no revision after 2025-11-25.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { transport } from "./place.js";
import { SCENARIOS, calls } from "./scenarios.js";

test("everything works", async (t) => {
  const connected = new Client({ name: "test", version: "1" });
  await connected.connect(transport({ StdioClientTransport, StreamableHTTPClientTransport }));
  try {
    assert.equal(connected.getServerVersion().name, "cellblock");
    for (const scenario of SCENARIOS) await t.test(scenario.name, () => scenario(connected, calls(connected, true)));
  } finally {
    await connected.close();
  }
});
