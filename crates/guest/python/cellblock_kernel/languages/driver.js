// Runs JavaScript cells for the kernel. Requests and answers are lines of JSON on descriptors of their own; the names
// that cells bind stay, and may be declared again, as in the console of a browser.
'use strict';

const { readSync, writeSync } = require('node:fs');
const { Session } = require('node:inspector');
const { createRequire, isBuiltin, syncBuiltinESMExports } = require('node:module');
const { Socket } = require('node:net');
const os = require('node:os');
const { createInterface } = require('node:readline');
const { pathToFileURL } = require('node:url');
const { inspect } = require('node:util');
const { Worker } = require('node:worker_threads');

const [REQUESTS, ANSWERS, SEEN, STOPS] = process.argv.splice(1).slice(1).map(Number);
// How long the main thread may take to notice that it has to stop, before what it runs is terminated.
const PATIENCE_MS = 50;
// The inspector keeps what it answers with until its group is released.
const GROUP = 'cell';
// Longest text of a value that is sent; of a longer one, the kernel would keep its beginning only.
const LONGEST = 16 << 20;
const PICTURES = {
  'image/png': [0x89, 0x50, 0x4e, 0x47],
  'image/jpeg': [0xff, 0xd8, 0xff],
  'image/gif': [0x47, 0x49, 0x46, 0x38],
};

function tell(message) {
  const bytes = Buffer.from(`${JSON.stringify(message)}\n`);
  for (let sent = 0; sent < bytes.length; ) sent += writeSync(ANSWERS, bytes, sent);
}

// Sends a value, and waits until its output has been sent: what the cell prints afterwards comes after it.
function display(value) {
  tell({ show: described(value) });
  readSync(SEEN, Buffer.alloc(1));
}

function described(value) {
  if (value instanceof Uint8Array && value.length <= 4 * LONGEST) {
    const starts = (start) => start.every((byte, at) => value[at] === byte);
    const picture = Object.keys(PICTURES).find((mime) => starts(PICTURES[mime]));
    if (picture) return { mime: picture, base64: Buffer.from(value).toString('base64') };
  }
  if (typeof value === 'string') return { json: JSON.stringify(value.slice(0, LONGEST)) };
  try {
    const json = JSON.stringify(value, plain);
    if (json.length <= LONGEST) return { json };
  } catch {
    // Not JSON, or longer than any string.
  }
  return { text: inspect(value).slice(0, LONGEST) };
}

// Throws for what JSON would leave out or change.
function plain(key, converted) {
  const value = this[key];
  if (typeof value === 'number' ? !Number.isFinite(value) : ['function', 'symbol', 'bigint'].includes(typeof value)) {
    throw new TypeError('not JSON');
  }
  if (value !== null && typeof value === 'object' && !Array.isArray(value) && !(value instanceof Date)) {
    const prototype = Object.getPrototypeOf(value);
    if (prototype !== Object.prototype && prototype !== null) throw new TypeError('not JSON');
  }
  return converted;
}

const session = new Session();
session.connect();

function post(method, parameters) {
  return new Promise((resolve, reject) => {
    session.post(method, parameters, (error, result) => (error ? reject(error) : resolve(result)));
  });
}

// The console's mode knows no modules: imports become calls of a function that is found under a name of its own.
const IMPORT = /^([ \t]*)import\s+(?:([\w$]+)\s*,?\s*)?(?:\*\s*as\s+([\w$]+)\s*|(\{[^}]*\})\s*)?(?:from\s*)?(['"][^'"\n]+['"])[ \t]*(?:;|$)/gm;
const IMPORT_CALL = /(?<![\w$.#'"`])import(?=\s*\(\s*[\w$'"`])/g;

function withoutImports(code) {
  const breaks = (text) => text.split('\n').length - 1;
  return code
    .replace(IMPORT, (whole, indent, name, all, some, module) => {
      const names = some?.slice(1, -1).replace(/\bas\b/g, ':') ?? '';
      const members = [name && `default: ${name}`, names].filter(Boolean).join(', ');
      const call = `await importModule(${module});`;
      // Lines stay where they were.
      const rest = '\n'.repeat(breaks(whole) - breaks(names));
      if (all) return `${indent}const ${all} = ${call}${name ? ` const ${name} = ${all}.default;` : ''}${rest}`;
      return `${indent}${members ? `const { ${members} } = ` : ''}${call}${rest}`;
    })
    .replace(IMPORT_CALL, 'importModule');
}

function importModule(name) {
  if (isBuiltin(name) || /^(file|data|node):/.test(name)) return import(name);
  return import(pathToFileURL(createRequire(`${process.cwd()}/cell`).resolve(name)));
}

let ended = () => {};

async function evaluate({ code, name, echo }) {
  const evaluated = await post('Runtime.evaluate', {
    expression: `${withoutImports(code)}\n//# sourceURL=${name}`,
    awaitPromise: true,
    replMode: true,
    objectGroup: GROUP,
  });
  const { result, exceptionDetails: thrown } = evaluated;
  if (thrown) return failed(thrown, name, code.split('\n').length);
  if (echo && result.type !== 'undefined' && result.subtype !== 'null') {
    if (result.objectId) {
      const declaration = 'function () { globalThis[Symbol.for("cellblock.value")] = this; }';
      await post('Runtime.callFunctionOn', { objectId: result.objectId, functionDeclaration: declaration });
      const value = globalThis[Symbol.for('cellblock.value')];
      delete globalThis[Symbol.for('cellblock.value')];
      display(value);
    } else {
      display(result.unserializableValue === undefined ? result.value : unserializable(result.unserializableValue));
    }
  }
  return {};
}

function unserializable(text) {
  return text.endsWith('n') ? BigInt(text.slice(0, -1)) : Number(text);
}

function failed({ exception, lineNumber }, name, lineCount) {
  const described = exception.description ?? String(exception.value);
  const lines = described.split('\n');
  // What called the cell is ours.
  const own = lines.findIndex((line) => line.includes('at Session.post'));
  const stack = own < 0 ? lines : lines.slice(0, own);
  const at = described.match(new RegExp(`${name}:(\\d+)`)) ?? described.match(/<anonymous>:(\d+)/);
  const syntax = exception.className === 'SyntaxError' && stack.every((line) => !line.includes(name));
  const message = lines[0].replace(/^\w*(Error|Exception): /, '');
  return {
    error: {
      type: exception.className ?? 'Error',
      message: exception.subtype === 'error' ? message : `the cell threw ${described}`,
      stack: stack.join('\n'),
      line: at ? Number(at[1]) : syntax ? Math.min(lineNumber + 1, lineCount) : null,
    },
  };
}

// Describes an error outside the cell's own code: one that was terminated (the kernel knows), or whose value cannot be shown.
function broken(error) {
  return { error: { type: error?.name ?? 'Error', message: String(error?.message ?? error), stack: String(error), line: null } };
}

// A thread that reads stops, because the main one may be in a loop that never ends. Without a kernel it ends everything.
const noticed = new Int32Array(new SharedArrayBuffer(4));
const watcher = new Worker(
  `const { Session } = require('node:inspector');
   const { Socket } = require('node:net');
   const { parentPort, workerData: { stops, noticed, patience } } = require('node:worker_threads');
   const session = new Session();
   session.connectToMainThread();
   new Socket({ fd: stops, readable: true, writable: false }).on('data', () => {
     Atomics.store(noticed, 0, 0);
     parentPort.postMessage('stop');
     if (Atomics.wait(noticed, 0, 0, patience) === 'timed-out') session.post('Runtime.terminateExecution');
   }).on('end', () => process.kill(process.pid, 'SIGKILL'));`,
  { eval: true, workerData: { stops: STOPS, noticed, patience: PATIENCE_MS } },
);
watcher.on('message', () => {
  Atomics.store(noticed, 0, 1);
  Atomics.notify(noticed, 0);
  ended({});
  tell({ stopped: true });
});
watcher.unref();

// The arguments of the last cell: what a cell does to them stays for the next one.
let given = '[]';

async function run(request) {
  const argv = JSON.stringify(request.argv);
  if (argv !== given) process.argv.splice(1, process.argv.length, ...request.argv);
  given = argv;
  const stopped = new Promise((resolve) => { ended = resolve; });
  const answer = await Promise.race([evaluate(request).catch(broken), stopped]);
  session.post('Runtime.releaseObjectGroup', { objectGroup: GROUP });
  if (!request.last) return tell({ done: answer });
  // Like the end of a script, which waits for its timers.
  process.once('beforeExit', () => tell({ done: answer }));
  requests.close();
  input.unref();
}

// A terminal's interrupt is for the programs that a cell started.
process.on('SIGINT', () => {});
const late = (error) => console.error('Uncaught', error);
process.on('uncaughtException', late);
process.on('unhandledRejection', late);
for (const [name, value] of Object.entries({ display, importModule })) {
  Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
}
// Without a network, Node.js cannot list interfaces and throws. There are none.
const { networkInterfaces } = os;
os.networkInterfaces = () => {
  try {
    return networkInterfaces();
  } catch (error) {
    if (error.code === 'ERR_SYSTEM_ERROR') return {};
    throw error;
  }
};
syncBuiltinESMExports();
globalThis.require = createRequire(`${process.cwd()}/cell`);
const input = new Socket({ fd: REQUESTS, readable: true, writable: false });
const requests = createInterface({ input });
requests.on('line', (line) => run(JSON.parse(line)));
