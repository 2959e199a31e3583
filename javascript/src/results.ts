import { CellblockError, CellError } from "./errors.js";
import * as api from "./generated.js";
import type { Server } from "./http.js";

/** Selection of a table's rows. */
export interface RowSelection {
  /** Index of the first row, from 0. */
  offset?: number;
  /** Number of rows, at most 10,000; by default 1000. */
  limit?: number;
  /** Index from 0 of the column by which all rows are sorted first. */
  sort?: number;
  descending?: boolean;
}

/** A value that a cell displayed. `data` is the object of the API. */
export class Output<T extends api.Output = api.Output> {
  constructor(
    readonly data: T,
    protected readonly server: Server,
  ) {}

  /** Kind of the output: `primitive`, `dataframe`, `figure`, `image`, `rich`, `chart`, `result` or `exception`. */
  get type(): T["type"] {
    return this.data.type;
  }

  /** The value: of a primitive a number, bigint, boolean, string or null; of anything else its text. */
  get value(): unknown {
    const data = this.data as api.Output;
    if (data.type === "primitive") {
      const { python_type: kind, value } = data;
      if (kind === "int" && typeof value === "string" && /^-?\d+$/.test(value)) return BigInt(value);
      if (kind === "float" && typeof value === "string") return floats[value] ?? value;
      return value;
    }
    if (data.type === "result") return data.value;
    return data.type === "rich" ? data.text : data.type === "exception" ? data.traceback : null;
  }

  protected artifact(reference: api.ArtifactRef | null, what: string, format?: string): Promise<Uint8Array> {
    if (reference === null) {
      const note = "note" in this.data && this.data.note ? `: ${this.data.note}` : "";
      throw new CellblockError(`the ${this.type} has no ${what}${note}`);
    }
    const names = { sha256: reference.sha256 };
    return this.server.call(api.operations.read_artifact, { names, query: { format } });
  }
}

const floats: Record<string, number> = { nan: Number.NaN, inf: Infinity, "-inf": -Infinity };

/** A data frame of pandas, Polars or pyarrow. Its rows are fetched when you ask for them. */
export class Table extends Output<api.Dataframe & { type: "dataframe" }> {
  /** Number of all rows. */
  get rowCount(): number {
    return this.data.rows;
  }

  /** Names of the columns. */
  get columns(): string[] {
    return this.data.columns.map((column) => column.name);
  }

  /** First rows, which came with the result. */
  get head(): unknown[][] {
    return this.data.head as unknown[][];
  }

  override get value(): this {
    return this;
  }

  /** Rows as objects. Long cells are cut; names of columns that occur twice keep the last value. Counts as a cell. */
  async rows(selection: RowSelection = {}): Promise<Array<Record<string, unknown>>> {
    const content = new TextDecoder().decode(await this.#read("json", selection));
    const { columns, rows } = JSON.parse(content) as { columns: Array<string | { name: string }>; rows: unknown[][] };
    const names = columns.map((column) => (typeof column === "string" ? column : column.name));
    return rows.map((row) => Object.fromEntries(row.map((cell, index) => [names[index] ?? String(index), cell])));
  }

  /** Rows as an Arrow IPC stream, for `tableFromIPC` of `apache-arrow`. Counts as a cell. */
  arrow(selection: RowSelection = {}): Promise<Uint8Array> {
    return this.#read("arrow", selection);
  }

  /** Rows as CSV. Counts as a cell. */
  async csv(selection: RowSelection = {}): Promise<string> {
    return new TextDecoder().decode(await this.#read("csv", selection));
  }

  /** All rows as a Parquet file. */
  async parquet(): Promise<Uint8Array> {
    return this.artifact(this.data.table, "stored rows");
  }

  async #read(format: string, selection: RowSelection): Promise<Uint8Array> {
    const { table } = this.data;
    if (table === null) return this.artifact(null, "stored rows");
    const names = { sha256: table.sha256 };
    return this.server.call(api.operations.read_rows, { names, query: { ...selection, format } });
  }
}

/** A figure of a plotting library, a chart, or a picture. */
export class Figure extends Output<Extract<api.Output, { type: "figure" | "image" | "chart" }>> {
  /** Format of the picture, such as `image/png`; empty if there is none. */
  get mediaType(): string {
    return this.data.image?.media_type ?? "";
  }

  /** Text for readers who cannot see the picture. */
  get alt(): string {
    return ("alt" in this.data && this.data.alt) || ("title" in this.data && this.data.title) || this.type;
  }

  override get value(): this {
    return this;
  }

  /** Bytes of the picture, in the format that `mediaType` names. */
  async picture(): Promise<Uint8Array> {
    return this.artifact(this.data.image, "picture");
  }

  /** A chart as `png`, `svg`, `html` (a page that needs no network) or `vega-lite`. Counts as a cell. */
  async export(format: "png" | "svg" | "html" | "vega-lite"): Promise<Uint8Array> {
    return this.artifact("document" in this.data ? this.data.document : null, "stored specification", format);
  }
}

/** A file that a cell wrote to `/tmp/output`. */
export class ProducedFile {
  constructor(
    readonly data: api.ProducedFile,
    private readonly server: Server,
  ) {}

  /** Name. The sandbox chose it: do not use it as a path. */
  get name(): string {
    return this.data.name;
  }

  /** Size in bytes. */
  get size(): number {
    return this.data.bytes;
  }

  /** Content. */
  async read(): Promise<Uint8Array> {
    return this.server.call(api.operations.read_artifact, { names: { sha256: this.data.sha256 } });
  }
}

function output(data: api.Output, server: Server): Output {
  if (data.type === "dataframe") return new Table(data, server) as unknown as Output;
  if (data.type === "figure" || data.type === "image" || data.type === "chart") {
    return new Figure(data, server) as unknown as Output;
  }
  return new Output(data, server);
}

/** What a cell did. `data` is the object of the API. Code that fails is a result, too. */
export class Result {
  readonly outputs: Output[];
  readonly files: ProducedFile[];

  constructor(
    readonly data: api.Cell,
    server: Server,
  ) {
    this.outputs = data.outputs.map((it) => output(it, server));
    this.files = data.files.map((it) => new ProducedFile(it, server));
  }

  /** `completed`, `raised`, `interrupted` (by a timeout, too), `kernel_lost`, `limit_exceeded` or `rejected`. */
  get outcome(): string {
    return this.data.outcome;
  }

  get stdout(): string {
    return this.data.stdout;
  }

  get stderr(): string {
    return this.data.stderr;
  }

  /** Whether the code ran to its end. */
  get ok(): boolean {
    return this.outcome === "completed";
  }

  /** The exception's type, message and line, if the code failed. */
  get error(): api.RaisedReport | null {
    return this.data.error ?? null;
  }

  /** Duration of the code in seconds. */
  get seconds(): number {
    return this.data.duration_ms / 1000;
  }

  /** Returns itself, or throws a `CellError` if the code failed. */
  check(): this {
    if (!this.ok) throw new CellError(this);
    return this;
  }

  /** The last displayed value, such as the last expression: of a table or figure, the output itself; `undefined` if there is none. */
  get value(): unknown {
    return this.check().outputs.at(-1)?.value;
  }

  /** The last table that the cell displayed. */
  get table(): Table {
    return this.#last((it): it is Table & Output => it instanceof Table, "table");
  }

  /** The last figure, chart or picture that the cell displayed. */
  get figure(): Figure {
    return this.#last((it): it is Figure & Output => it instanceof Figure, "figure");
  }

  #last<T extends Output>(matches: (output: Output) => output is T, what: string): T {
    const found = this.check().outputs.filter(matches).at(-1);
    if (found) return found;
    const shown = this.outputs.map((it) => it.type).join(", ") || "nothing";
    throw new CellblockError(`the cell displayed no ${what}, but ${shown}`);
  }

  /** What failed, in one text. */
  describeError(): string {
    const error = this.error;
    const traceback = this.data.outputs.find((it) => it.type === "exception")?.traceback.trimEnd();
    const what = traceback ?? [this.outcome, error?.type, error?.message].filter(Boolean).join(": ");
    return this.data.note ? `${what}\n${this.data.note}` : what;
  }

  /** Everything that the cell returned, as text of any length: output, values, the first rows of tables, and the error. */
  describe(): string {
    const parts = [this.stdout.trimEnd(), this.stderr.trimEnd(), ...this.data.outputs.map(describeOutput)];
    parts.push(...this.files.map((it) => `file ${it.name}, ${it.size} bytes`));
    parts.push(this.ok ? (this.data.note ?? "") : this.describeError());
    return parts.filter(Boolean).join("\n") || "The code ran and displayed nothing.";
  }
}

function describeOutput(output: api.Output): string {
  if (output.type === "dataframe") {
    const rows = [output.columns.map((column) => column.name), ...(output.head as unknown[][])];
    const shown = rows.map((row) => row.map((cell) => String(cell ?? "")).join("\t")).join("\n");
    return `${shown}\nrows: ${output.rows}, columns: ${output.columns.length}`;
  }
  if (output.type === "primitive") return String(output.value);
  if (output.type === "result") return JSON.stringify(output.value);
  if (output.type === "rich") return output.text;
  // It is part of the error.
  if (output.type === "exception") return "";
  return `${output.type}: ${("alt" in output && output.alt) || ("title" in output && output.title) || "a picture"}`;
}
