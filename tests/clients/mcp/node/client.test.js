// The protocol's own TypeScript client, in both revisions, against one server.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { transport } from "./place.js";
import { SCENARIOS, calls } from "./scenarios.js";

const TRANSPORTS = { StdioClientTransport, StreamableHTTPClientTransport };
const REVISIONS = { "2025-11-25": "legacy", "2026-07-28": { pin: "2026-07-28" } };

function client(mode) {
  return new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
}

for (const [revision, mode] of Object.entries(REVISIONS)) {
  test(`everything works at ${revision}`, async (t) => {
    const connected = client(mode);
    await connected.connect(transport(TRANSPORTS));
    try {
      assert.equal(connected.getNegotiatedProtocolVersion(), revision);
      assert.equal(connected.getServerVersion().name, "cellblock");
      for (const scenario of SCENARIOS) await t.test(scenario.name, () => scenario(connected, calls(connected)));
    } finally {
      await connected.close();
    }
  });
}
