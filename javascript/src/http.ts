import { CellblockError, ServerError } from "./errors.js";

/** An operation of the API: its method, its path with names in braces, and the type of its result. */
export interface Operation<T> {
  readonly method: string;
  readonly path: string;
  /** Reads the result of a response. */
  read(response: Response): Promise<T>;
}

/** Returns an operation whose result is JSON. */
export function json<T>(method: string, path: string): Operation<T> {
  return { method, path, read: (response) => response.json() as Promise<T> };
}

/** Returns an operation whose result is bytes. */
export function download(method: string, path: string): Operation<Uint8Array> {
  return { method, path, read: async (response) => new Uint8Array(await response.arrayBuffer()) };
}

/** A request's content and options. */
export interface Call {
  /** Values for the names in the path. */
  names?: Record<string, string | number>;
  /** Values that are `undefined` or `null` are left out. */
  query?: Record<string, unknown>;
  /** Content as JSON. */
  value?: unknown;
  /** Content as bytes, text or a form. */
  body?: Uint8Array | string | Blob | FormData;
  accept?: string;
  signal?: AbortSignal | undefined;
}

/** Returns an operation's path with values for its names, quoted. Values of `path` can have slashes. */
export function pathOf(operation: Operation<unknown>, names: Record<string, string | number> = {}): string {
  return operation.path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = String(names[name] ?? "");
    const parts = name === "path" ? value.split("/") : [value];
    // These would be another operation's path.
    if (parts.at(-1) === "" || parts.some((part) => part === "." || part === "..")) {
      throw new CellblockError(`invalid ${name} \`${value}\`: it must be a name`);
    }
    return parts.map(encodeURIComponent).join("/");
  });
}

/** The address of a server and the key for it. */
export class Server {
  readonly url: string;
  readonly #key: string | undefined;
  readonly #fetch: typeof fetch;

  constructor(url: string, key: string | undefined, own: typeof fetch | undefined) {
    const trimmed = url.trim().replace(/\/+$/, "").replace(/\/v1$/, "").replace(/\/+$/, "");
    if (!/^https?:\/\/[^/?#]/.test(trimmed) || !URL.canParse(trimmed)) {
      throw new CellblockError(`the address \`${url}\` is not http://HOST or https://HOST`);
    }
    const { username, password, search, hash } = new URL(trimmed);
    if (username + password + search + hash !== "") {
      // Without the address: it can have a password, and errors end up in logs.
      throw new CellblockError("the address has a user, a query or a fragment; use http://HOST or https://HOST, and pass the key as `key`");
    }
    // A key from a file ends with a line break. An empty variable of the environment is not a key.
    const word = key?.trim() || undefined;
    if (word !== undefined && !/^[!-~]+$/.test(word)) {
      // Without the key: errors end up in logs.
      throw new CellblockError("the key has characters that no key has; use the one that `cellblock key create` printed");
    }
    this.url = trimmed;
    this.#key = word;
    this.#fetch = own ?? ((...request) => fetch(...request));
  }

  /** Returns the header with the key, if there is one. */
  authorization(): Record<string, string> {
    return this.#key === undefined ? {} : { Authorization: `Bearer ${this.#key}` };
  }

  /** Calls an operation and returns its result. */
  async call<T>(operation: Operation<T>, call: Call = {}): Promise<T> {
    const response = await this.open(operation, call);
    const what = `${operation.method} ${operation.path}`;
    try {
      return await operation.read(response);
    } catch (error) {
      if (error instanceof SyntaxError) {
        const fix = "check the host and port of the URL";
        throw new CellblockError(`${what}: ${this.url} did not answer with JSON: ${fix}`, { cause: error });
      }
      throw this.#failed(what, error);
    }
  }

  /** Sends a request and returns its successful response. */
  async open(operation: Operation<unknown>, call: Call = {}): Promise<Response> {
    const headers: Record<string, string> = { Accept: call.accept ?? "*/*", ...this.authorization() };
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(call.query ?? {})) {
      if (value !== undefined && value !== null) query.set(name, String(value));
    }
    let body: BodyInit | null = (call.body as BodyInit | undefined) ?? null;
    if (call.value !== undefined) {
      body = JSON.stringify(call.value);
      headers["Content-Type"] = "application/json";
    } else if (body !== null && !(body instanceof FormData)) {
      headers["Content-Type"] = "application/octet-stream";
    }
    const target = `${this.url}${pathOf(operation, call.names)}${query.size > 0 ? `?${query}` : ""}`;
    const what = `${operation.method} ${operation.path}`;
    let response: Response;
    try {
      response = await this.#fetch(target, { method: operation.method, headers, body, redirect: "manual", signal: call.signal ?? null });
    } catch (error) {
      throw this.#failed(what, error);
    }
    if (!response.ok) throw await problem(response, what);
    return response;
  }

  /** Sends a request and yields the events of its response. Leaving it early closes the connection. */
  async *events<T>(operation: Operation<unknown>, call: Call): AsyncGenerator<T> {
    const response = await this.open(operation, { ...call, accept: "text/event-stream" });
    try {
      yield* events<T>(response);
    } catch (error) {
      throw this.#failed(`${operation.method} ${operation.path}`, error);
    }
  }

  /** Returns an error of a connection with the change that would repair it. An abort stays itself. */
  #failed(what: string, error: unknown): unknown {
    if (!(error instanceof TypeError)) return error;
    const cause = error.cause as { code?: string; message?: string } | undefined;
    const code = cause?.code ?? "";
    const host = new URL(this.url).host;
    let fix = "check the host and port of the URL";
    if (code === "ECONNREFUSED") fix = `nothing listens at ${host}; start \`cellblock serve\`, or correct the port`;
    else if (code === "ENOTFOUND" || code === "EAI_AGAIN") fix = `the host of ${host} is unknown; correct the URL`;
    else if (code === "ERR_SSL_WRONG_VERSION_NUMBER" || code === "ERR_SSL_PACKET_LENGTH_TOO_LONG") {
      fix = `${host} does not answer with TLS; use http:// if the server has no certificate`;
    } else if (/CERT|SELF_SIGNED|UNABLE_TO/.test(code)) {
      fix = "set NODE_EXTRA_CA_CERTS to the certificate authority that signed the server's certificate";
    } else if (this.url.startsWith("http:") && (code === "UND_ERR_SOCKET" || code.startsWith("HPE_"))) {
      fix = `${host} closed the connection; use https:// if the server has a certificate`;
    }
    const reason = cause?.message || code || error.message;
    return new CellblockError(`${what} at ${this.url}: ${reason}: ${fix}`, { cause: error });
  }
}

async function problem(response: Response, what: string): Promise<ServerError> {
  let code: string | null = null;
  let message = `${what}: the server answered ${response.status} ${response.statusText}`;
  // A redirect is not followed: it would turn a POST into a GET. Browsers do not say where it leads.
  if (response.type === "opaqueredirect" || (response.status >= 300 && response.status < 400)) {
    message = `${what}: the server redirects to ${response.headers.get("location") ?? "another address"}; use that address as the URL`;
  }
  try {
    const { error } = (await response.json()) as { error: unknown };
    if (typeof error === "string") {
      // `POST /execute` has the text alone.
      message = error;
    } else {
      const fields = error as { code?: string | null; message: string };
      code = fields.code ?? null;
      message = fields.message;
    }
  } catch {
    // Not an answer of Cellblock: a proxy's, perhaps.
  }
  const after = Number.parseFloat(response.headers.get("retry-after") ?? "");
  return new ServerError(response.status, code, message, Number.isNaN(after) ? null : after);
}

/** Yields the JSON of a stream of server-sent events. */
async function* events<T>(response: Response): AsyncGenerator<T> {
  if (response.body === null) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line.startsWith("data: ")) yield JSON.parse(line.slice(6)) as T;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

type Camel<S extends string> = S extends `${infer A}_${infer B}` ? `${A}${Capitalize<Camel<B>>}` : S;

/** Fields of a request with their names in camel case. */
export type Options<T> = { [K in keyof T as Camel<K & string>]?: Exclude<T[K], null> | undefined };

/** Returns fields with the names that the API has for them, without those that have no value. */
export function fields(options: object): Record<string, unknown> {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [name.replace(/[A-Z]/g, (it) => `_${it.toLowerCase()}`), value]));
}
