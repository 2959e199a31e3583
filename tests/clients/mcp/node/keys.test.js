// What a server over HTTP says to a client whose key does not count.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

import { transport } from "./place.js";

for (const mode of ["legacy", { pin: "2026-07-28" }]) {
  test(`a wrong key is refused: ${JSON.stringify(mode)}`, async () => {
    const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
    const connecting = client.connect(transport({ StreamableHTTPClientTransport }, "wrong"));
    await assert.rejects(connecting, /Incorrect API key provided: it is not known here|requires authorization \(HTTP 401\)/);
  });
}
