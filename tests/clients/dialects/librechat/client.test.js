// Uses LibreChat's own tools as its agents do. LIBRECHAT_CODE_BASEURL names the server.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  createBashExecutionTool,
  createCodeExecutionTool,
  createProgrammaticToolCallingTool,
  fetchSessionFiles,
} from '@librechat/agents';

const baseUrl = process.env.LIBRECHAT_CODE_BASEURL;

/** Calls a tool as the node of a graph does: with what only the host knows beside the model's arguments. */
async function call(tool, args, injected = {}) {
  return tool.invoke({ ...injected, type: 'tool_call', id: 'c1', name: tool.name, args });
}

async function upload(name, content) {
  const form = new FormData();
  form.append('kind', 'user');
  form.append('id', 'user-1');
  form.append('file', new Blob([content]), name);
  const response = await fetch(`${baseUrl}/upload`, { method: 'POST', body: form });
  assert.equal(response.status, 200);
  const { storage_session_id, files } = await response.json();
  return { id: files[0].fileId, resource_id: 'user-1', storage_session_id, name, kind: 'user' };
}

async function runs(input) {
  const code = createCodeExecutionTool({ baseUrl, files: [input] });
  const message = await call(code, {
    lang: 'py',
    code: "print(open('/mnt/data/in.csv').read())\nopen('/mnt/data/out.txt', 'w').write('made')",
  });
  assert.match(message.content, /stdout:\na,b/);
  assert.match(message.content, /1 persisted file/);
  const made = message.artifact.files.find((file) => file.name === 'out.txt');
  assert.match(made.id, /^[A-Za-z0-9_-]{21}$/);
  assert.equal(message.artifact.files.find((file) => file.name === 'in.csv').inherited, true);
  const files = await fetchSessionFiles(baseUrl, made.storage_session_id, { kind: 'user', id: 'user-1' });
  assert.deepEqual(files.map((file) => [file.id, file.name]), [[made.id, 'out.txt']]);
  const response = await fetch(`${baseUrl}/download/${made.storage_session_id}/${made.id}?kind=user&id=user-1`);
  assert.equal(await response.text(), 'made');
  await assert.rejects(call(code, { lang: 'rs', code: 'fn main() {}' }), /rejected/);
}

async function conversations() {
  const options = { baseUrl, statefulSessions: true, runtimeSessionHint: 'conversation-1' };
  const bash = createBashExecutionTool(options);
  const first = await call(bash, { command: 'x=1; echo kept > /mnt/data/kept.txt; echo bad >&2' });
  assert.match(first.content, /stderr:\nbad/);
  assert.equal(first.artifact.runtime_status, 'new');
  const second = await call(bash, { command: 'cat /mnt/data/kept.txt; echo "x=$x"; rm /mnt/data/kept.txt' });
  assert.match(second.content, /stdout:\nkept\nx=$/m);
  assert.equal(second.artifact.runtime_status, 'reused');
  assert.deepEqual(second.artifact.deleted_files, ['kept.txt']);
}

async function programs() {
  const tool = createProgrammaticToolCallingTool({ baseUrl });
  const definitions = [{ name: 'get-price', description: 'A price.', parameters: { type: 'object' } }];
  const prices = { a: 40, b: 2 };
  const invoked = [];
  const getPrice = {
    name: 'get-price',
    invoke: async (input) => {
      invoked.push(input);
      return prices[input.of] ?? Promise.reject(new Error(`no price of ${input.of}`));
    },
  };
  const injected = {
    toolMap: new Map([['get-price', getPrice]]),
    toolDefs: definitions,
    tools: definitions,
    programmaticToolName: tool.name,
  };
  const code = [
    'import asyncio',
    "a, b = await asyncio.gather(get_price(of='a'), get_price(of='b'))",
    'print(a + b)',
    'try:',
    "    await get_price(of='c')",
    'except Exception as error:',
    '    print(error)',
  ].join('\n');
  const message = await call(tool, { code }, injected);
  assert.match(message.content, /stdout:\n42\n.*no price of c/);
  assert.deepEqual(invoked.map((input) => input.of).sort(), ['a', 'b', 'c']);
}

test('code reads an uploaded file and makes one', async () => runs(await upload('in.csv', 'a,b\n')));
test('a conversation keeps its files', conversations);
test('a program calls tools while it runs', programs);
