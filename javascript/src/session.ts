import { CellblockError, ServerError } from "./errors.js";
import * as api from "./generated.js";
import { type Call, type Operation, type Options, type Server, fields } from "./http.js";
import { Process } from "./process.js";
import { Result } from "./results.js";

/** Settings of a new session: the fields of `POST /v1/sessions`, in camel case. */
export type SessionOptions = Options<Omit<api.CreateRequest, "inputs">> & {
  /** Variables to bind before the first cell, each an object as for `PUT …/inputs/{name}`. */
  inputs?: Record<string, api.Given>;
};

/** Options of a cell. */
export interface CellOptions {
  /** Timeout in seconds. */
  timeout?: number;
  /** Packages to install first. */
  requirements?: string[];
  language?: api.Language;
  /** Producer that the origins of the cell's variables name. */
  producer?: string;
  /** Interrupts the cell when it aborts. */
  signal?: AbortSignal;
}

/** Events of a streamed cell. The last one is `cell.done`. */
export type StreamEvent = (Exclude<api.CellEvent, { type: "cell.error" }> | { type: "cell.done"; cell: api.Cell }) & {
  sequence_number: number;
};

/** Content of a file or dataset. */
export type Content = string | Uint8Array | Blob;

/** A cell whose effects count only once it is kept. Until then, the session rejects other requests. */
export class Try {
  constructor(
    private readonly session: Session,
    /** What the cell returned. */
    readonly result: Result,
    /** Variables and files that the cell created, changed or removed. */
    readonly changes: api.TryChanges,
    /** Whether the session waits for `keep` or `discard`. */
    readonly undecided: boolean,
  ) {}

  /** Makes the cell's effects those of the session. */
  async keep(): Promise<void> {
    await this.session.keepTry();
  }

  /** Returns the session to its state before the cell. */
  async discard(): Promise<void> {
    await this.session.discardTry();
  }
}

/** A sandbox whose variables live until it ends. `Client.session` makes one. */
export class Session {
  constructor(
    /** ID on its server. */
    readonly id: string,
    private readonly server: Server,
  ) {}

  /** Settings, limits and status. */
  describe(): Promise<api.Session> {
    return this.#call(api.operations.get_session);
  }

  /**
   * Runs a cell and returns what it did. Code that fails is a result too: see `Result.check`. `onOutput` is called with `stdout` or
   * `stderr` and each piece of text as it is written.
   */
  async run(
    code: string,
    options: CellOptions & { dryRun?: boolean; onOutput?: (stream: "stdout" | "stderr", text: string) => void } = {},
  ): Promise<Result> {
    const { onOutput, dryRun, signal, ...rest } = options;
    const value = { code, ...fields({ ...rest, dryRun }) };
    // As a stream, because runtimes end requests whose answers begin after minutes.
    for await (const event of this.#events(api.operations.run_cell, { value, signal })) {
      if (event.type === "cell.stdout") onOutput?.("stdout", event.text);
      else if (event.type === "cell.stderr") onOutput?.("stderr", event.text);
      else if (event.type === "cell.done") return new Result(event.cell, this.server);
    }
    throw cut();
  }

  /**
   * Runs a cell and yields its events. Leaving the loop early interrupts the cell, unless it has a `streamId`, a name that you make up
   * for each cell: it then runs on for 60 seconds, and `resume` yields the rest.
   */
  stream(code: string, options: CellOptions & { streamId?: string } = {}): AsyncGenerator<StreamEvent> {
    const { signal, ...rest } = options;
    return this.#events(api.operations.run_cell, { value: { code, ...fields(rest) }, signal });
  }

  /** Yields the events of a cell with a `streamId`, after the one with the number `startingAfter`. */
  resume(streamId: string, { startingAfter, signal }: { startingAfter?: number; signal?: AbortSignal } = {}): AsyncGenerator<StreamEvent> {
    const query = { starting_after: startingAfter };
    return this.#events(api.operations.resume_cell, { names: { stream: streamId }, query, signal });
  }

  /** Makes a result of the API's object of a cell, such as that of the event `cell.done`. */
  result(cell: api.Cell): Result {
    return new Result(cell, this.server);
  }

  /** The last 50 cells, within 8 MiB, the oldest first. */
  async cells(): Promise<Result[]> {
    return (await this.#call(api.operations.list_cells)).data.map((it) => new Result(it, this.server));
  }

  /** A cell by its number. */
  async cell(number: number): Promise<Result> {
    return new Result(await this.#call(api.operations.get_cell, { names: { cell: number } }), this.server);
  }

  /** Interrupts the cell that runs now. Its variables are kept. */
  async interrupt(): Promise<void> {
    await this.#call(api.operations.interrupt_session, { value: {} });
  }

  /** Starts over with an empty sandbox. */
  async reset(): Promise<void> {
    await this.#call(api.operations.reset_session, { value: {} });
  }

  /** The session's variables. */
  async variables(): Promise<api.Variable[]> {
    return (await this.#call(api.operations.list_variables)).data;
  }

  /** A variable's value. `rows` and `page` select a page of a table, `chars` and `page` one of a text. Counts as a cell. */
  variable(
    name: string,
    query: { rows?: number; chars?: number; page?: number; view?: "full" | "minimal" } = {},
  ): Promise<api.SessionVariable> {
    return this.#call(api.operations.get_variable, { names: { name }, query });
  }

  /** Producer, cell and fetched data of a variable that a cell with a `producer` has bound. */
  origin(name: string): Promise<api.VariableOrigin> {
    return this.#call(api.operations.get_variable_origin, { names: { name } });
  }

  /**
   * Binds a value to a variable: bytes in a `format` (`csv`, `parquet`, `json`, `ndjson`, `arrow`, `xlsx`; `bytes` by default), or
   * anything that JSON can hold. `detected` in the answer says how a file that is not plain was read.
   */
  put(name: string, value: unknown, { format = "bytes" }: { format?: api.InputFormat } = {}): Promise<api.InputBound> {
    const isBytes = value instanceof Uint8Array || value instanceof Blob;
    const call = isBytes ? { body: value, query: { format } } : { value: { value } };
    return this.#call(api.operations.bind_input, { names: { name }, ...call });
  }

  /** Binds one of your artifacts to a variable. */
  putArtifact(name: string, sha256: string, format: api.InputFormat): Promise<api.InputBound> {
    return this.#call(api.operations.bind_input, { names: { name }, value: { artifact: sha256, format } });
  }

  /** Writes a file. Relative paths are below `/workspace`. */
  async write(path: string, content: Content): Promise<void> {
    await this.#call(api.operations.write_file, { names: { path: inside(path) }, body: content });
  }

  /** Reads a file. Relative paths are below `/workspace`. */
  read(path: string): Promise<Uint8Array> {
    return this.#call(api.operations.read_file, { names: { path: inside(path) } });
  }

  /** Deletes a file. Relative paths are below `/workspace`. */
  async remove(path: string): Promise<void> {
    await this.#call(api.operations.delete_file, { names: { path: inside(path) } });
  }

  /** Files below `/workspace` and `/tmp/output`. */
  async files(): Promise<api.ListedFile[]> {
    return (await this.#call(api.operations.list_files)).data;
  }

  /** Adds a dataset to a session with the toolset `workbench`: a read-only file in `/tmp/data`. */
  mount(name: string, content: Content, { asCsv }: { asCsv?: boolean } = {}): Promise<api.Mounted> {
    return this.#call(api.operations.add_dataset, { query: { name, as_csv: asCsv }, body: content });
  }

  /** Datasets that were added with `mount`. */
  async datasets(): Promise<api.Mounted[]> {
    return (await this.#call(api.operations.list_datasets)).data;
  }

  /** Tools with the JSON schemas of their parameters, as a model gets them. */
  async tools(): Promise<api.Tool[]> {
    return (await this.#call(api.operations.list_tools)).data;
  }

  /** Calls a tool and returns its answer, for a cell an `api.Cell`. */
  callTool(name: string, args: object, { signal }: { signal?: AbortSignal } = {}): Promise<unknown> {
    return this.#call(api.operations.call_tool, { names: { name }, value: args, signal });
  }

  /** Records a tool's result in a session with the toolset `derivation`. */
  record(request: api.AliasRequest): Promise<api.Alias> {
    return this.#call(api.operations.record_alias, { value: request });
  }

  /** Recorded results of tools. */
  async aliases(): Promise<api.Alias[]> {
    return (await this.#call(api.operations.list_aliases)).data;
  }

  /** Saves variables and files. `name` can be used instead of the ID. Needs the backend `process`. */
  checkpoint(name?: string): Promise<api.NewCheckpoint> {
    return this.#call(api.operations.create_checkpoint, { value: fields({ name }) });
  }

  /** Checkpoints, the oldest first. */
  async checkpoints(): Promise<api.Checkpoint[]> {
    return (await this.#call(api.operations.list_checkpoints)).data;
  }

  /** Returns variables and files to those of a checkpoint, which is named by its ID or name and stays. */
  rollback(checkpoint: string): Promise<api.RolledBack> {
    return this.#call(api.operations.roll_back_session, { value: { checkpoint } });
  }

  /** Deletes a checkpoint, named by its ID or name. */
  async deleteCheckpoint(checkpoint: string): Promise<void> {
    await this.#call(api.operations.delete_checkpoint, { names: { checkpoint } });
  }

  /** Makes independent sessions that begin with this one's variables and files: all of them, at most 16, or none. */
  async fork(count = 1, { reseed = true } = {}): Promise<Session[]> {
    const { ids } = await this.#call(api.operations.fork_session, { value: { count, reseed } });
    return ids.map((id) => new Session(id, this.server));
  }

  /** Runs a cell whose effects count only once they are kept. */
  async tryRun(code: string, options: CellOptions = {}): Promise<Try> {
    const { signal, ...rest } = options;
    const made = await this.#call(api.operations.try_cell, { value: { code, ...fields(rest) }, signal });
    return new Try(this, new Result(made, this.server), made.changes, made.undecided);
  }

  /** Keeps the undecided try. */
  keepTry(): Promise<api.DecidedTry> {
    return this.#call(api.operations.keep_try);
  }

  /** Discards the undecided try. */
  discardTry(): Promise<api.DecidedTry> {
    return this.#call(api.operations.discard_try);
  }

  /** Frees the memory and keeps the files, and the variables if the backend can. The next request resumes the session. */
  hibernate(): Promise<api.Hibernated> {
    return this.#call(api.operations.hibernate_session);
  }

  /** What happened to the session: checkpoints, rollbacks, tries, forks, lost kernels. The oldest is first. */
  async events(): Promise<api.SessionEvent[]> {
    return (await this.#call(api.operations.list_session_events)).data;
  }

  /** Starts a program with its arguments, which no shell reads. `terminal` gives it a terminal of that size. */
  async startProcess(command: string[], options: Options<Omit<api.ProcessRequest, "command">> = {}): Promise<Process> {
    const made = await this.#call(api.operations.start_process, { value: { command, ...fields(options) } });
    return new Process(this.id, made, this.server);
  }

  /** Programs that run, and the last 64 that have ended. */
  async processes(): Promise<Process[]> {
    return (await this.#call(api.operations.list_processes)).data.map((it) => new Process(this.id, it, this.server));
  }

  /** Ports on which programs of the sandbox listen, if visits from outside are allowed. */
  async ports(): Promise<api.Port[]> {
    return (await this.#call(api.operations.list_ports)).data;
  }

  /** A link to a port that opens without a key. `valid` is in seconds, 3600 by default. */
  link(port: number, { valid }: { valid?: number } = {}): Promise<api.PortLink> {
    return this.#call(api.operations.create_port_link, { names: { port }, value: fields({ validS: valid }) });
  }

  /** Memory in bytes, processor time in milliseconds, and processes of the sandbox. */
  usage(): Promise<api.SessionUsage> {
    return this.#call(api.operations.get_session_usage);
  }

  /** Ends the session and its sandbox. One that has already ended is not an error. */
  async close(): Promise<void> {
    try {
      await this.#call(api.operations.delete_session);
    } catch (error) {
      if (!(error instanceof ServerError && error.status === 404)) throw error;
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #call<T>(operation: Operation<T>, call: Call = {}): Promise<T> {
    return this.server.call(operation, { ...call, names: { id: this.id, ...call.names } });
  }

  async *#events(operation: Operation<unknown>, call: Call): AsyncGenerator<StreamEvent> {
    const names = { id: this.id, ...call.names };
    type Received = StreamEvent | { type: "cell.error"; error: { code?: string; message: string } };
    for await (const event of this.server.events<Received>(operation, { ...call, names })) {
      if (event.type === "cell.error") throw new ServerError(502, event.error.code ?? null, event.error.message, null);
      yield event;
      if (event.type === "cell.done") return;
    }
    throw cut();
  }
}

function cut(): CellblockError {
  return new CellblockError("the server's stream ended before the cell did; check the server and proxies in front of it");
}

function inside(path: string): string {
  return path.startsWith("/") ? path.replace(/^\/+/, "") : `workspace/${path}`;
}
