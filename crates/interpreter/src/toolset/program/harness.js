// Runs a program of a model up to its end, or until it only waits for calls of the client's functions. It runs
// again from the start after each pause, with the answers that there are: its context is fresh, and its clock and
// random numbers are those of its start. No value of this context gets into the program's, except texts.
await (async (input, output) => {
  const vm = require('node:vm');
  const { writeFileSync } = require('node:fs');
  const { tmpdir } = require('node:os');
  const request = JSON.parse(Buffer.from(input, 'base64').toString());
  // Microtasks run inside of each evaluation, so that its time is bounded and nothing but calls is open after it.
  const context = vm.createContext(Object.create(null), { name: 'program', microtaskMode: 'afterEvaluate' });
  const deadline = Date.now() + request.timeout_ms;
  // The program does not see the names by which values are handed over.
  const HIDE = 'for (const name of ["$argument", "$step", "$program", "$ended"]) delete globalThis[name];';

  function evaluate(code, argument) {
    Object.assign(context, { $argument: argument });
    const timeout = Math.max(1, deadline - Date.now());
    return vm.runInContext(code, context, { filename: 'harness.js', timeout });
  }

  function prepare() {
    const { functions, started_ms: now, limits } = JSON.parse($argument);
    for (const name of ['console', 'WebAssembly', 'Atomics', 'SharedArrayBuffer', 'WeakRef', 'FinalizationRegistry']) {
      delete globalThis[name];
    }
    const { parse, stringify } = JSON;
    // Other readers of JSON reject half of a surrogate pair.
    const whole = (text) => text.toWellFormed();
    const RealDate = Date;
    function FixedDate(...args) {
      if (!new.target) return new RealDate(now).toString();
      return Reflect.construct(RealDate, args.length ? args : [now], new.target);
    }
    Object.assign(FixedDate, { now: () => now, parse: RealDate.parse, UTC: RealDate.UTC });
    Object.defineProperty(FixedDate, 'name', { value: 'Date' });
    FixedDate.prototype = RealDate.prototype;
    FixedDate.prototype.constructor = FixedDate;
    globalThis.Date = FixedDate;
    // Formats without a date show the time of the real clock.
    const formats = Intl.DateTimeFormat.prototype;
    const { get: formatOf } = Object.getOwnPropertyDescriptor(formats, 'format');
    const { formatToParts: partsOf } = formats;
    Object.defineProperty(formats, 'format', {
      get() {
        const format = formatOf.call(this);
        return (date = now) => format(date);
      },
    });
    formats.formatToParts = function formatToParts(date = now) {
      return partsOf.call(this, date);
    };
    let seed = now >>> 0;
    Math.random = () => {
      seed = (seed + 0x6d2b79f5) | 0;
      let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    };

    const calls = [];
    let answered = 0;
    let open = 0;
    const shown = { text: '', images: [], state: 'waits', error: null };

    async function call(name, args) {
      if (args === undefined) args = {};
      if (args === null || typeof args !== 'object' || Array.isArray(args)) {
        throw new TypeError(`${name} takes one object of arguments, such as ${name}({ key: "value" })`);
      }
      const text = stringify(args, (_, value) => (typeof value === 'string' ? whole(value) : value));
      if (text === undefined || text.length > limits.argument_chars) {
        throw new RangeError(`the arguments of ${name} have more than ${limits.argument_chars} characters as JSON`);
      }
      if (calls.length - answered >= limits.open_calls) {
        throw new RangeError(`at most ${limits.open_calls} calls may wait at the same time; await some of them first`);
      }
      if (calls.length >= limits.calls) throw new RangeError(`a program may make at most ${limits.calls} calls`);
      if (open + text.length > limits.open_chars) {
        throw new RangeError(`the arguments of calls that wait have more than ${limits.open_chars} characters in all`);
      }
      open += text.length;
      return new Promise((resolve) => calls.push({ name, arguments: text, resolve }));
    }

    const known = Object.create(null);
    const named = Object.create(null);
    for (const name of functions) {
      const called = (args) => call(name, args);
      known[name] = called;
      const identifier = name.replace(/[^\w$]/g, '_').replace(/^(?=\d)/, '_');
      if (!(identifier in named)) named[identifier] = called;
    }
    for (const [name, called] of Object.entries(named)) {
      if (!(name in known)) known[name] = called;
      if (!(name in globalThis)) globalThis[name] = called;
    }
    globalThis.tools = new Proxy(known, {
      get(target, name) {
        if (name in target || typeof name === 'symbol' || name === 'then') return target[name];
        throw new ReferenceError(`there is no function ${name}; there are: ${functions.join(', ') || 'none'}`);
      },
    });
    globalThis.text = (value) => {
      const text = whole(typeof value === 'string' ? value : (stringify(value) ?? String(value)));
      const line = shown.text && !shown.text.endsWith('\n') ? `\n${text}` : text;
      if (shown.text.length + line.length > limits.text_chars) {
        throw new RangeError(`the output has more than ${limits.text_chars} characters; show less`);
      }
      shown.text += line;
    };
    globalThis.image = (value) => {
      const url = typeof value === 'object' && value !== null ? value.image_url : value;
      if (typeof url !== 'string' || !/^data:image\/[a-z+.-]+;base64,[A-Za-z0-9+/=]+$/.test(url)) {
        throw new TypeError('image takes the URL of a picture such as data:image/png;base64,…, or { image_url }');
      }
      const length = shown.images.reduce((sum, other) => sum + other.length, url.length);
      if (shown.images.length >= limits.images || length > limits.image_chars) {
        throw new RangeError(`at most ${limits.images} images with ${limits.image_chars} characters can be shown`);
      }
      shown.images.push(url);
    };

    // A longer report would not be read at all.
    const bounded = (text) => whole(text.slice(0, limits.error_chars));
    const describe = (error) => {
      try {
        if (typeof error === 'string') return bounded(`the program threw ${error}`);
        // Node.js throws errors of another context, such as that of an import.
        if (!(error instanceof Error) && typeof error?.message !== 'string') {
          return bounded(`the program threw ${stringify(error)}`);
        }
        const at = /program\.js:(\d+)/.exec(error.stack ?? '');
        return bounded(`${error.name}: ${error.message}`) + (at ? ` (line ${at[1]})` : '');
      } catch {
        return 'the program threw a value that cannot be described';
      }
    };
    return {
      ended: (error, failed) => {
        shown.state = failed ? 'failed' : 'ended';
        shown.error = failed ? describe(error) : null;
      },
      answer: (text) => {
        for (const answer of parse(text)) {
          const waiting = calls[answered];
          answered += 1;
          open -= waiting.arguments.length;
          let value = answer;
          try {
            value = parse(answer);
          } catch {
            // A text.
          }
          waiting.resolve(value);
        }
      },
      report: () => {
        const pending = calls.slice(answered).map(({ name, arguments: text }) => ({ name, arguments: text }));
        return stringify({ ...shown, calls: pending });
      },
    };
  }

  // Runs a function of the program's context inside of an evaluation, which handles its microtasks.
  const bridge = evaluate(`(${prepare})()`, JSON.stringify(request));
  const within = (step, argument) => {
    Object.assign(context, { $step: step });
    return evaluate(`{ const step = $step, argument = $argument; ${HIDE} step(argument); }`, argument);
  };

  function play() {
    const wrapped = `(async () => {${request.code}\n})`;
    const options = { filename: 'program.js', timeout: Math.max(1, deadline - Date.now()) };
    const program = new vm.Script(wrapped, options).runInContext(context, options);
    Object.assign(context, { $program: program, $ended: bridge.ended });
    const begin = 'program().then(() => ended(null, false), (error) => ended(error, true));';
    evaluate(`{ const program = $program, ended = $ended; ${HIDE} ${begin} }`);
    let replayed = 0;
    for (;;) {
      const report = JSON.parse(bridge.report());
      if (report.state !== 'waits') return report;
      const next = request.calls.slice(replayed, replayed + report.calls.length);
      if (replayed === request.calls.length) {
        if (report.calls.length > 0) return report;
        const error = 'the program waits for something that never happens; it can only wait for calls of functions';
        return { ...report, state: 'failed', error };
      }
      const plain = (text) => JSON.stringify(JSON.parse(text));
      const same = ({ name, arguments: text }, at) => {
        const now = report.calls[at];
        return name === now.name && plain(text) === plain(now.arguments);
      };
      if (next.length < report.calls.length || next.length === 0 || !next.every(same)) {
        const error = 'the program does not make the calls that it made before its pause, so that it cannot continue';
        return { ...report, calls: [], state: 'failed', error };
      }
      replayed += next.length;
      within(bridge.answer, JSON.stringify(next.map((call) => call.output)));
    }
  }

  let report;
  try {
    report = play();
  } catch (error) {
    const late = error?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT';
    const seconds = request.timeout_ms / 1000;
    const told = late
      ? `the program ran longer than ${seconds} seconds, the limit; do less in one program`
      : `${error?.name}: ${error?.message}`;
    const whole = told.slice(0, request.limits.error_chars).toWellFormed();
    report = { ...JSON.parse(bridge.report()), calls: [], state: 'failed', error: whole };
  }
  // Where `/tmp` could not be mounted, it is another folder.
  const folder = process.env.HOME === '/workspace' ? '/tmp' : tmpdir();
  writeFileSync(`${folder}/${output}`, JSON.stringify(report));
})
