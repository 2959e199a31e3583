import { CellblockError } from "./errors.js";
import * as api from "./generated.js";
import { type Server, pathOf } from "./http.js";

/** Seconds that one request waits for output or for an end. */
const WAIT = 50;

/** Bytes of a terminal's output that wait to be read. A WebSocket cannot make its server wait. */
const WAITING = 16 << 20;

/** End of a process, as its terminal reports it. */
export interface TerminalEnd {
  state: api.ProcessState;
  exit_code: number | null;
  signal: string | null;
}

/** A program of a session. It runs until it ends, or until the session is reset or ends. */
export class Process {
  #offset = 0;
  #ended = false;

  constructor(
    readonly session: string,
    readonly data: api.Process,
    private readonly server: Server,
  ) {}

  /** ID in the session, such as `p1`. */
  get id(): string {
    return this.data.id;
  }

  /** State: `running`, `exited` with `exit_code`, `killed` by `signal`, or `lost` with its sandbox. */
  status(): Promise<api.Process> {
    return this.#wait(0);
  }

  /** Output of stdout and stderr from an offset in bytes. `maxBytes` is at most 1 MiB, `wait` at most 60 seconds. */
  output(options: { offset?: number; maxBytes?: number; wait?: number; signal?: AbortSignal } = {}): Promise<api.ProcessOutput> {
    const query = { offset: options.offset, max_bytes: options.maxBytes, wait: options.wait };
    return this.server.call(api.operations.read_process_output, { names: this.#names, query, signal: options.signal });
  }

  /** Output since the last `read`; empty if there was none within `wait` seconds, or if all of it was read. */
  async read(wait = WAIT): Promise<string> {
    if (this.#ended) return "";
    const output = await this.output({ offset: this.#offset, wait });
    this.#offset = output.next_offset;
    this.#ended = output.eof;
    return output.text;
  }

  /** Yields the output as it is written, to the end of the program. */
  async *[Symbol.asyncIterator](): AsyncGenerator<string> {
    while (!this.#ended) {
      const text = await this.read();
      if (text !== "") yield text;
    }
  }

  /** Sends input, at most 1 MiB, to a process with `stdin` or a terminal. `close` closes its standard input afterward. */
  async send(data: string | Uint8Array, { close = false } = {}): Promise<void> {
    const value =
      typeof data === "string"
        ? { data, close }
        : { data: btoa(Array.from(data, (byte) => String.fromCharCode(byte)).join("")), encoding: "base64", close };
    await this.server.call(api.operations.send_process_input, { names: this.#names, value });
  }

  /** Sends a signal, by its name. */
  async signal(name = "SIGTERM"): Promise<void> {
    await this.server.call(api.operations.signal_process, { names: this.#names, value: { signal: name } });
  }

  /** Waits for the end, at most `timeout` seconds, and returns the state, which is `running` if time was over. */
  async wait(timeout = Infinity): Promise<api.Process> {
    const until = Date.now() + timeout * 1000;
    for (;;) {
      const status = await this.#wait(Math.max(0, Math.min(WAIT, (until - Date.now()) / 1000)));
      if (status.state !== "running" || Date.now() >= until) return status;
    }
  }

  /**
   * Connects to the terminal of a process that was started with one. A server with keys needs a `WebSocket` that sends headers,
   * which that of Node 22 and the package `ws` do and browsers do not.
   */
  terminal({ offset = 0, webSocket = globalThis.WebSocket as unknown } = {}): Promise<Terminal> {
    if (typeof webSocket !== "function") {
      throw new CellblockError("open the terminal: this runtime has no WebSocket; use Node 22, or pass that of the package `ws`");
    }
    const path = pathOf(api.operations.open_process_terminal, this.#names);
    const url = `${this.server.url.replace(/^http/, "ws")}${path}?offset=${offset}`;
    const create = webSocket as new (url: string, options?: unknown, more?: unknown) => WebSocket;
    const headers = this.server.authorization();
    // The package `ws` takes protocols first; the others take an object with both.
    const socket = create === globalThis.WebSocket ? new create(url, { headers }) : new create(url, [], { headers });
    return Terminal.open(socket, this.server.url);
  }

  get #names(): Record<string, string> {
    return { id: this.session, process: this.id };
  }

  #wait(timeout: number): Promise<api.Process> {
    return this.server.call(api.operations.wait_process, { names: this.#names, value: { timeout } });
  }
}

/** The terminal of a process. Closing it leaves the program running. */
export class Terminal {
  /** End of the process, once its output was read to the end. */
  end: TerminalEnd | null = null;
  readonly #pieces: Uint8Array[] = [];
  #waiting = 0;
  #closed = false;
  #failure: CellblockError | null = null;
  #wake: () => void = () => undefined;

  private constructor(private readonly socket: WebSocket) {
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => {
      if (this.#closed) return;
      if (typeof data === "string") this.end = (JSON.parse(data) as { end?: TerminalEnd }).end ?? this.end;
      else this.#add(new Uint8Array(data as ArrayBuffer));
      this.#wake();
    };
    socket.onclose = ({ wasClean }) => {
      if (!this.#closed && !wasClean && this.end === null) this.#fail("the connection was closed");
      this.#closed = true;
      this.#wake();
    };
  }

  /** Waits until a socket is open. */
  static open(socket: WebSocket, url: string): Promise<Terminal> {
    const terminal = new Terminal(socket);
    return new Promise((resolve, reject) => {
      socket.onopen = () => resolve(terminal);
      socket.onerror = () =>
        reject(new CellblockError(`open the terminal at ${url}: the server refused it; check that the process has a terminal, and the key`));
    });
  }

  /** Sends keys as they are typed: `"\x03"` is Ctrl-C. */
  send(data: string | Uint8Array): void {
    this.socket.send((typeof data === "string" ? new TextEncoder().encode(data) : data) as Uint8Array<ArrayBuffer>);
  }

  /** Changes the size of the window, each from 1 to 4096 characters. */
  resize(rows: number, columns: number): void {
    this.socket.send(JSON.stringify({ resize: { rows, columns } }));
  }

  /** Yields output to the end, for one reader, which has to keep up: at most 16 MiB wait. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      const piece = this.#pieces.shift();
      if (piece) {
        this.#waiting -= piece.length;
        yield piece;
      } else if (this.#failure) throw this.#failure;
      else if (this.#closed) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** Disconnects. */
  close(): void {
    this.#closed = true;
    this.#wake();
    this.socket.close();
  }

  #add(piece: Uint8Array): void {
    this.#waiting += piece.length;
    if (this.#waiting > WAITING) {
      this.#fail(`more than ${WAITING} bytes waited to be read`);
      this.close();
    } else this.#pieces.push(piece);
  }

  #fail(reason: string): void {
    this.#failure = new CellblockError(`read the terminal: ${reason}; connect again with the offset of what was read`);
  }
}
