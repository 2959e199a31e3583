// The client without a server: addresses, errors of connections, and that it has every operation.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:http";
import { test } from "node:test";

import { bounded } from "../dist/tools.js";
import { Client, CellblockError, CellError, ServerError } from "../dist/index.js";

/** Serves one answer to all requests while `work` runs. */
async function answering(answer, work) {
  const server = createServer(answer).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  try {
    return await work(`http://127.0.0.1:${server.address().port}`);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

function fixed(status, body, headers = {}) {
  return (_, response) => response.writeHead(status, headers).end(typeof body === "string" ? body : JSON.stringify(body));
}

const SESSION = { id: "sess_1" };

/** Runs a cell whose events are these. */
async function ran(events) {
  const answer = (request, response) => {
    if (request.url === "/v1/sessions") return fixed(201, SESSION)(request, response);
    response.writeHead(200, { "content-type": "text/event-stream" });
    const text = events.map((event) => `event: x\ndata: ${JSON.stringify(event)}\n\n: keep-alive\n\n`).join("");
    // In pieces that split lines and characters.
    const bytes = Buffer.from(text);
    for (let start = 0; start < bytes.length; start += 7) response.write(bytes.subarray(start, start + 7));
    response.end();
  };
  return answering(answer, async (url) => (await new Client({ url }).session()).run("code"));
}

const CELL = { outcome: "completed", outputs: [], files: [], stdout: "", stderr: "", duration_ms: 1500 };

test("an address can end in /v1", async () => {
  const asked = [];
  const answer = (request, response) => {
    asked.push(request.url);
    fixed(200, { data: [] })(request, response);
  };
  await answering(answer, async (url) => {
    for (const end of ["", "/", "/v1", "/v1/"]) await new Client({ url: url + end }).sessions();
  });
  assert.deepEqual(asked, Array(4).fill("/v1/sessions"));
});

test("an address that is not one is an error before any request", () => {
  for (const url of ["host:8080", "ftp://host", "http://", "http://host:port", ""]) {
    assert.throws(() => new Client({ url }), /is not http:\/\/HOST or https:\/\/HOST/);
  }
});

test("an address with a password is rejected and not shown", () => {
  for (const url of ["https://user:pw@host", "https://host?key=pw", "https://host/#pw"]) {
    assert.throws(() => new Client({ url }), (error) => /pass the key as `key`/.test(error.message) && !error.message.includes("pw"));
  }
});

test("a key loses the line break of its file, and one that cannot be sent is not shown", async () => {
  const sent = [];
  const answer = (request, response) => {
    sent.push(request.headers.authorization);
    fixed(200, { data: [] })(request, response);
  };
  await answering(answer, async (url) => {
    for (const key of ["cbk_1\n", ""]) await new Client({ url, key }).sessions();
  });
  assert.deepEqual(sent, ["Bearer cbk_1", undefined]);
  for (const key of ["cbk_1\n2", "cbk_…"]) {
    assert.throws(() => new Client({ url: "http://host", key }), (error) => error instanceof CellblockError && !error.message.includes("cbk_"));
  }
});

test("a redirect is not followed, but names the address to use", async () => {
  await answering(fixed(301, "", { location: "https://elsewhere/" }), (url) =>
    assert.rejects(new Client({ url }).session(), /^ServerError: .*redirects to https:\/\/elsewhere\/; use that address/),
  );
});

test("a refused connection names the address and the fix", async () => {
  const url = await answering(fixed(200, ""), (url) => url);
  await assert.rejects(new Client({ url: `${url}/v1` }).sessions(), (error) => {
    assert.ok(error instanceof CellblockError);
    assert.match(error.message, /at http:\/\/127\.0\.0\.1:\d+: .*ECONNREFUSED.*start `cellblock serve`/);
    return true;
  });
});

test("https at a server without it says to use http", async () => {
  await answering(fixed(200, "{}"), (url) =>
    assert.rejects(new Client({ url: url.replace("http:", "https:") }).sessions(), /does not answer with TLS; use http:\/\//),
  );
});

test("an answer that is not JSON is explained", async () => {
  await answering(fixed(200, "<html>"), (url) =>
    assert.rejects(new Client({ url }).sessions(), /did not answer with JSON: check the host and port/),
  );
});

test("an error has the server's code, message and delay", async () => {
  const error = { message: "wait", type: "too_many_requests", param: null, code: "session_busy" };
  await answering(fixed(429, { error }, { "retry-after": "2" }), (url) =>
    assert.rejects(new Client({ url, key: "k" }).runs(), (error) => {
      assert.ok(error instanceof ServerError);
      assert.deepEqual([error.status, error.code, error.message, error.retryAfter], [429, "session_busy", "wait", 2]);
      return true;
    }),
  );
  await answering(fixed(400, { error: "no code" }), (url) => assert.rejects(new Client({ url }).execute(""), /^ServerError: no code$/));
});

test("names in a path are quoted and cannot leave it", async () => {
  const asked = [];
  const answer = (request, response) => {
    asked.push(request.url);
    fixed(200, SESSION)(request, response);
  };
  await answering(answer, async (url) => {
    const client = new Client({ url });
    await client.volume("a/b ?");
    await (await client.session()).read("/tmp/ü#.txt");
    for (const name of ["", ".."]) await assert.rejects(client.volume(name), /it must be a name/);
  });
  assert.deepEqual(asked, ["/v1/volumes/a%2Fb%20%3F", "/v1/sessions", "/v1/sessions/sess_1/files/tmp/%C3%BC%23.txt"]);
});

test("a stream is read across its pieces, and values have JavaScript's types", async () => {
  const primitive = (python_type, value) => ({ type: "primitive", name: null, python_type, value, truncated: false });
  const outputs = [primitive("str", "é7"), primitive("int", "100000000000000000000"), primitive("float", "nan"), primitive("int", 7)];
  const result = await ran([{ type: "cell.started" }, { type: "cell.stdout", text: "ü" }, { type: "cell.done", cell: { ...CELL, outputs } }]);
  assert.deepEqual(result.outputs.map((it) => it.value), ["é7", 100000000000000000000n, Number.NaN, 7]);
  assert.deepEqual([result.value, result.seconds], [7, 1.5]);
  assert.throws(() => result.table, /displayed no table, but primitive, primitive/);
});

test("code that fails is a result until it is checked", async () => {
  const exception = { type: "exception", exception: "ZeroDivisionError", traceback: "ZeroDivisionError: division by zero\n" };
  const cell = { ...CELL, outcome: "raised", outputs: [exception], error: { type: "ZeroDivisionError", message: "division by zero", line: 1 } };
  const result = await ran([{ type: "cell.done", cell }]);
  assert.equal(result.ok, false);
  assert.throws(() => result.value, (error) => error instanceof CellError && error.result === result && /division by zero/.test(error.message));
  assert.equal(result.describe(), "ZeroDivisionError: division by zero");
});

test("a stream that fails or ends early is an error", async () => {
  await assert.rejects(ran([{ type: "cell.error", error: { code: "gateway_lost", message: "lost" } }]), /ServerError: lost/);
  await assert.rejects(ran([{ type: "cell.started" }]), /stream ended before the cell did/);
  const answer = (request, response) => {
    if (request.url === "/v1/sessions") return fixed(201, SESSION)(request, response);
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write('data: {"type": "cell.started"}\n\n', () => response.destroy());
  };
  await answering(answer, async (url) => {
    const session = await new Client({ url }).session();
    const read = async () => {
      for await (const event of session.stream("1")) assert.equal(event.type, "cell.started");
    };
    for (const failed of [session.run("1"), read()]) await assert.rejects(failed, CellblockError);
  });
});

test("a terminal whose connection is cut, or whose reader is slow, fails after what it has received", async () => {
  let socket;
  class FakeSocket {
    constructor() {
      socket = this;
      setImmediate(() => this.onopen());
    }
    close() {
      this.isClosed = true;
    }
  }
  const answer = (request, response) => fixed(201, request.url === "/v1/sessions" ? SESSION : { id: "p1" })(request, response);
  const open = (url) =>
    new Client({ url })
      .session()
      .then((session) => session.startProcess(["sh"]))
      .then((process) => process.terminal({ webSocket: FakeSocket }));
  const readAll = async (terminal) => {
    let size = 0;
    try {
      for await (const piece of terminal) size += piece.length;
    } catch (error) {
      return [size, error.message];
    }
    return [size];
  };
  await answering(answer, async (url) => {
    const cut = await open(url);
    socket.onmessage({ data: new ArrayBuffer(3) });
    socket.onclose({ wasClean: false });
    const fix = "; connect again with the offset of what was read";
    assert.deepEqual(await readAll(cut), [3, `read the terminal: the connection was closed${fix}`]);

    const slow = await open(url);
    for (let piece = 0; piece < 20; piece += 1) socket.onmessage({ data: new ArrayBuffer(1 << 20) });
    assert.equal(socket.isClosed, true);
    assert.deepEqual(await readAll(slow), [16 << 20, `read the terminal: more than ${16 << 20} bytes waited to be read${fix}`]);

    const closed = await open(url);
    closed.close();
    socket.onclose({ wasClean: false });
    assert.deepEqual(await readAll(closed), [0]);
  });
});

test("every operation of the API has a method", () => {
  const folder = new URL("../src/", import.meta.url);
  const text = readdirSync(folder)
    .filter((name) => name !== "generated.ts")
    .map((name) => readFileSync(new URL(name, folder), "utf8"))
    .join("");
  const known = [...readFileSync(new URL("generated.ts", folder), "utf8").matchAll(/^ {2}(\w+): (?:json<|download\()/gm)].map((it) => it[1]);
  assert.ok(known.length > 70);
  assert.deepEqual(known.filter((name) => !new RegExp(`operations\\.${name}\\b`).test(text)), []);
});

test("a model's text is cut in its middle, and control characters are visible", () => {
  assert.equal(bounded(`a${"b".repeat(50)}c`, 10), `abbbb\n… 42 characters left out …\nbbbbc`);
  assert.equal(bounded("abc", 0), "\n… 3 characters left out …\n");
  assert.equal(bounded("\x1b[2J\u202etxt\n\t"), "\\u001b[2J\\u202etxt\n\t");
});
