// Made by `python/generate.py` from `docs/reference/openapi.json`.

import { download, json } from "./http.js";

/** A recorded tool result. */
export interface Alias {
  /** Its name in code and contracts. */
  alias: string;
  bytes: number;
  format: InputFormat;
  /** `session.alias`. */
  object: string;
  /** Number of rows, if it is a table or a list. */
  rows: number | null;
  sha256: ArtifactId;
  /** The tool. */
  tool: string;
}

/** An object of the API. */
export interface AliasList {
  data: Array<Alias>;
  object: "list";
}

/** A tool result to record. */
export interface AliasRequest {
  /** Custom alias, instead of one derived from the tool's name. */
  alias?: string | null;
  /** The sha256 of one of the caller's artifacts, in `format`. */
  artifact?: string | null;
  /** A table as base64, in `format`. */
  data?: string | null;
  /** `value` for JSON, `parquet` or `arrow` for a table. */
  format?: string | null;
  /** The tool that returned the result; the alias consists of its name and a number. */
  tool?: string | null;
  /** Any JSON. */
  value?: Record<string, any>;
}

/** The value that a cell passed to `set_result`. */
export interface Answer {
  /** The value as JSON; null if it could not be stored. */
  json: ArtifactRef | null;
  /** Name of its Python type. */
  python_type: string;
  /** The value. */
  value: any;
}

/** The sha256 of the artifact's bytes. */
export type ArtifactId = string;

/** Stored bytes. */
export interface ArtifactRef {
  /** Number of bytes. */
  bytes: number;
  /** Kind of the artifact. */
  kind: Kind;
  /** Media type of the bytes, such as `image/png` or `application/vnd.apache.parquet`. */
  media_type: string;
  /** The sha256 of the bytes, which identifies them in the artifact store. */
  sha256: ArtifactId;
}

/** Stored bytes. */
export interface ArtifactReport {
  /** Number of bytes. */
  bytes: number;
  /** Kind of the artifact. */
  kind: Kind;
  /** File with the bytes; it must not be changed. */
  path: string | null;
  /** The sha256 of the bytes. */
  sha256: string;
}

/** A panel of a chart. */
export interface Axes {
  /** Title. */
  title: string | null;
  /** Label of the horizontal axis. */
  xlabel: string | null;
  /** Label of the vertical axis. */
  ylabel: string | null;
}

/** A backend. */
export interface Backend {
  /** Version that it runs, or the part that is missing and how to get it. */
  detail: string;
  /** Whether the server uses it. */
  in_use: boolean;
  name: BackendKind;
  /** Whether it works on the server's machine. */
  works: boolean;
}

/** A backend that makes sandboxes on this machine. */
export type BackendKind = "process" | "gvisor" | "microvm";

/** An object of the API. */
export interface BackendList {
  data: Array<Backend>;
  object: "list";
}

/** A build that runs. */
export interface BuildAnswer {
  /** Time of its start, in seconds since 1970. */
  began: number;
  /** Number of bytes done in this stage, if it counts them. */
  done?: number | null;
  /** Current stage, such as `installing packages`. */
  stage: string;
  /** Number of bytes known so far in this stage, which may grow. */
  total?: number | null;
  /** Target of the build, such as `image default` or `requirements rapidfuzz`. */
  what: string;
}

/** A function of a connector. */
export interface Card {
  /** Description of the function. */
  description?: string;
  /** Effect of a call. */
  effect: FetchEffect;
  /** Name by which code calls it: a valid Python identifier, unique in the connector. */
  function: string;
  /** Name by which the connector knows the function. */
  name: string;
  /** JSON Schema of the arguments, which are an object. */
  parameters: any;
  /** JSON Schema of the result, if the connector declares one. */
  returns?: any;
}

/** A cell as in `cellblock run --json`, with its session and number. */
export interface Cell {
  /** The bytes of outputs and files, and fetched tables. */
  artifacts: Array<ArtifactReport>;
  /** Number of the cell in the session, starting at 1. */
  cell: number;
  /** The code. */
  code: string;
  /** Whether the session's state does not come from it, because of a later rollback or as a discarded try. */
  discarded?: boolean;
  /** Duration of the cell in milliseconds. */
  duration_ms: number;
  /** The exception that it raised, if any. */
  error?: RaisedReport | null;
  /** Fetches from connectors, in the order of its calls. */
  fetches?: Array<FetchRecord>;
  /** Number of calls of connectors beyond the 200 that `fetches` lists. */
  fetches_dropped?: number;
  /** Files that it created or changed in `/workspace` and `/tmp/output`. */
  files: Array<ProducedFile>;
  /** Findings about its data. */
  findings?: Array<Finding>;
  /** The limit that it exceeded, if any. */
  limit?: Exceeded | null;
  /** A note for the model: lost variables, limits, and how to continue. */
  note?: string | null;
  /** `session.cell`. */
  object: string;
  /** Origins of the variables that it bound or changed, if it has a producer and completed. */
  origins?: Record<string, VariableOrigin>;
  /** Outcome: `completed`, `raised`, `interrupted`, `kernel_lost`, `limit_exceeded` or `rejected`. */
  outcome: string;
  /** Displayed outputs in order, including those before a failure. */
  outputs: Array<Output>;
  /** Number of outputs that exceeded the limit and were dropped. */
  outputs_dropped?: number;
  /** Number of the cell whose variables and files it found; absent if it is the first. */
  parent?: number | null;
  /** Reasons that the cell was rejected. */
  rejections?: Array<Rejection>;
  /** The sandbox that it ran in. */
  sandbox: SandboxJson;
  /** Files saved under `--out`. */
  saved?: Array<string>;
  /** The session's id. */
  session: string;
  /** Files that could not be collected, with reasons. */
  skipped_files?: Array<SkippedFile>;
  /** State of the session's variables: `kept`, `rescued` (they are as before the cell, which was killed) or `lost`. */
  state: State;
  /** Output to stderr, truncated in the same way. */
  stderr: string;
  /** Whether part of stderr is omitted. */
  stderr_truncated: boolean;
  /** Output to stdout. If it is truncated, a line in the middle says how much is omitted. */
  stdout: string;
  /** Whether part of stdout is omitted. */
  stdout_truncated: boolean;
}

/** An event of a streamed cell. */
export type CellEvent = { session: string; type: "cell.started" } | { text: string; type: "cell.stdout" } | { text: string; type: "cell.stderr" } | { display_id?: string | null; output: Output; type: "cell.output" } | { display_id: string; output: Output; type: "cell.output_updated" } | { type: "cell.cleared"; wait: boolean } | { file: ProducedFile; type: "cell.file" } | { error: any; type: "cell.error" };

/** An object of the API. */
export interface CellList {
  data: Array<Cell>;
  object: "list";
}

/** Whether code consists of statements or is an expression. */
export type CellMode = "exec" | "eval";

/** A cell to run. */
export interface CellRequest {
  /** The code. The value of a trailing expression is displayed. */
  code?: string | null;
  /** Check the code without running it. The result has the form of a run that was rejected or completed; it is not stored, and its number is 0. */
  dry_run?: boolean;
  /** The language of the code: `python`, `bash`, `javascript` or `r`. A session keeps the state of each. */
  language?: string;
  /** Producer of the variables that it makes, such as the path of a notebook; their origins name it. */
  producer?: string | null;
  /** Additional packages, as requirement strings. */
  requirements?: Array<string>;
  /** Stream the result as events; the same as `Accept: text/event-stream`. */
  stream?: boolean;
  /** Name for the stream of events, 1 to 64 letters, digits, `-` or `_`, which your client makes up for each cell. The cell then goes on for 60 s without its client, which reads the rest of the events with `GET /v1/sessions/{id}/streams/{stream}`. */
  stream_id?: string | null;
  /** Timeout in seconds. */
  timeout?: number | null;
}

/** Kind of a difference from an earlier state. */
export type ChangeKind = "created" | "changed" | "removed";

/** A variable that differs from the state before a try. */
export interface ChangedVariable {
  /** Kind of the difference. */
  change: ChangeKind;
  /** Name. */
  name: string;
}

/** A chart that a reader's client draws. */
export interface Chart {
  /** Text alternative. */
  alt: string | null;
  /** The specification with the rows, as one JSON document; null if it could not be stored. */
  document: ArtifactRef | null;
  /** Height of the image in pixels. */
  height: number | null;
  /** The chart as PNG; null if it could not be drawn, which `note` explains. */
  image: ArtifactRef | null;
  /** Reason that there is no image. */
  note?: string | null;
  /** Number of rows. */
  rows: number;
  /** Its specification; see `docs/reference/chart.md`. */
  spec: any;
  /** Its title. */
  title: string | null;
  /** Width of the image in pixels. */
  width: number | null;
}

/** A checkpoint. */
export interface Checkpoint {
  /** Estimate of the memory that it took up when it was made, in bytes. It grows with what later cells change. */
  bytes: number;
  /** Number of the last cell before it; 0 if none had run. */
  cell: number;
  /** Time at which it was made, in milliseconds since 1970. */
  created_unix_ms: number;
  /** Number of files that it holds. */
  files: number;
  /** Id, which the session never uses again. */
  id: string;
  /** Name, if it was given one. */
  name?: string | null;
  /** Id of the checkpoint that the session had made or gone back to last; absent if its variables did not come from one. */
  parent?: string | null;
}

/** An object of the API. */
export interface CheckpointList {
  data: Array<Checkpoint>;
  object: "list";
}

/** A checkpoint to make. */
export interface CheckpointRequest {
  /** Name, by which it can be used instead of its ID: 1 to 64 letters, digits, `-`, `_` or `.`. */
  name?: string | null;
}

/** A column of a table. */
export interface Column {
  /** Its type as Arrow prints it; empty if the table could not be stored. */
  arrow_type: string;
  /** Its type as its library prints it. */
  dtype: string;
  /** Its name. */
  name: string;
  /** Number of null values among the stored ones. */
  nulls: number;
}

/** A column of a table. */
export interface Column2 {
  /** Type, as printed by the library. */
  dtype: string;
  /** Its name. */
  name: string;
}

/** A column of a table. */
export interface ColumnType {
  /** Its type, such as `Int64`, `Float64`, `String`, `Date`. */
  dtype: string;
  /** Its name. */
  name: string;
}

/** A connector: functions of the host under one name. */
export interface Connector {
  /** Description of the connector. */
  description?: string;
  /** Its functions. */
  functions: Array<Card>;
  /** Name to bind. */
  name: string;
  /** The reason why its functions are not known yet; a call asks for them again. */
  unavailable?: string | null;
}

/** Result of a function. */
export interface ConnectorAnswer {
  /** The arguments with defaults; long ones are cut, which "…" marks. */
  arguments: Record<string, any>;
  /** The table as Parquet, if the answer is one. */
  artifact?: ArtifactRef | null;
  /** Size of the answer in bytes. */
  bytes?: number | null;
  /** Whether the answer is that of an earlier equal call. */
  cached: boolean;
  /** Names of the rows' fields. */
  columns?: Array<string>;
  /** The connector. */
  connector: string;
  /** Duration of the call in milliseconds. */
  duration_ms: number;
  /** Message of the failure. */
  error?: string | null;
  /** Time at which the answer arrived, as RFC 3339; for a cached one, the time of the first call's answer. */
  fetched_at?: string | null;
  /** The function, by its name in code. */
  function: string;
  /** The first 5 rows. */
  head?: Array<any>;
  /** Reason that the table could not be stored. */
  note?: string | null;
  /** `ok`, `rehearsed` for a call that was not made, `canceled`, or the kind of the failure: `unauthorized`, `payment_required`, `rate_limit`, `provider`, `empty_data`, `parse`, `invalid_parameter`, `timeout` or `not_granted`. */
  outcome: string;
  /** Seconds after which the call may succeed, if it failed because of a rate limit and that is known. */
  retry_after?: number | null;
  /** Number of rows, if the answer is a table or a list of objects. */
  row_count?: number | null;
  /** The last 5 rows, without those in `head`. */
  tail?: Array<any>;
  /** Whether the answer has more than is here: rows beyond `head` and `tail`, or a value of more than 1 MiB. All of it is the Parquet file at `/v1/artifacts/{sha256}` if there is an `artifact`. */
  truncated: boolean;
  /** The answer, if it is not a table in Arrow form. */
  value?: any;
}

/** An object of the API. */
export interface ConnectorList {
  data: Array<Connector>;
  object: "list";
}

/** Options of a new session. */
export interface CreateRequest {
  /** Connectors that code can call, of those that the operator offers to code. By default all of them in a `notebook`, and none in a session with another toolset. */
  connectors?: Array<string> | null;
  /** Level of the check before code runs: `off`, `standard` or `strict`. By default that of the gateway (`cells.guard`), which is also the lowest possible. */
  guard?: string | null;
  /** Idle timeout of the session in seconds. */
  idle_timeout?: number | null;
  /** Inputs to bind before the first cell. */
  inputs?: Record<string, any>;
  /** Limits below those of the gateway; `limits` of a session lists them. A derivation always uses the gateway's limits. */
  limits?: Record<string, any>;
  /** Weakest backend behind which the session may run: `process`, `gvisor` or `microvm`. The request is rejected if the server's is weaker. */
  minimum_backend?: string | null;
  /** Network that code can use: `none`, `loopback` for servers on `127.0.0.1` and `::1` inside the sandbox, or `egress` for the hosts of its allow-list as well; where the gateway and the key allow it. */
  network?: string | null;
  /** Hosts that code can use, of those that the gateway allows, and secrets for them, in the form of OpenAI's containers: `{type: "allowlist", allowed_domains, domain_secrets}`. `network` is then `egress`. */
  network_policy?: Record<string, any> | null;
  /** Action after the idle timeout: `end`, or `hibernate`, which frees the session's memory and keeps its files, and its variables if the backend can. A hibernated session ends when it is not used for the gateway's `sessions.hibernation_timeout`. By default what the gateway has in `sessions.on_idle`. */
  on_idle?: string | null;
  /** Sets of names to bind at the start: `analysis`, `documents`, `derivation`, `notebook` (`print` shows a data frame or a chart as an output). By default those of the toolset. */
  prelude?: Array<string> | null;
  /** Project of the caller whose datasets code can publish and load. A derivation has none. */
  project?: string | null;
  /** Packages that code and commands have in addition to those of the image, such as `six==1.17.0`, if the image and the server permit them. They are installed before the first cell or command. A derivation has none. */
  requirements?: Array<string>;
  /** Whether variables survive a cell that kills its kernel: `off`, `idle` or `on`. */
  rescue?: string | null;
  /** Datasets of the project that code may load without having looked at them, by slug. */
  seen?: Array<string>;
  /** Code that prepares the session: it runs before the first cell, and again after a reset and in each new kernel. */
  setup?: string | null;
  /** Skills that code finds in `/skills`, each a `skill_reference` or `inline`, as in `POST /v1/containers`. A derivation has none. */
  skills?: Array<Record<string, any>>;
  /** Toolset of the session. */
  toolset?: ToolsetName;
  /** Volume whose files the session has in `/workspace/volume`; it is created if it does not exist. Changes are saved after each cell. A derivation has none. */
  volume?: string | null;
  /** Access to the volume: `write`, for one session at a time, or `read` for a copy of its last revision. */
  volume_access?: string | null;
}

/** A table. */
export interface Dataframe {
  /** The columns, including those of the index. */
  columns: Array<Column>;
  /** Whether `table` contains all rows. If not, it contains the first and the last ones. */
  complete: boolean;
  /** The first rows, at most 10, one value per column. Numbers beyond 2^53, non-finite numbers, dates, times and decimals are strings; long values are truncated. */
  head: Array<Array<any>>;
  /** Names of the columns that were the index; a plain range index is omitted. */
  index: Array<string>;
  /** Library of the table. */
  library: DataframeLibrary;
  /** Name of the displayed variable; null for an expression. */
  name: string | null;
  /** A note for the reader. */
  note?: string | null;
  /** Number of rows of the table in the kernel. */
  rows: number;
  /** Number of rows in `table`. */
  rows_stored: number;
  /** Whether it is a series instead of a frame. */
  series: boolean;
  /** The rows as Parquet; null if they could not be stored, which `note` explains. */
  table: ArtifactRef | null;
  /** The last rows, at most 5, without those in `head`. */
  tail: Array<Array<any>>;
}

/** A library with tables. */
export type DataframeLibrary = "pandas" | "polars" | "pyarrow";

/** A version of a dataset. */
export interface DatasetVersion {
  /** Size of the Parquet file in bytes. */
  bytes: number;
  /** Columns and their types, those of the index first. */
  columns: Array<Column2>;
  /** The sha256 of its columns and values, equal for equal data in files of different writers. */
  data_sha256: string;
  /** Calls of connectors whose answers it is made from. */
  fetches?: Array<string>;
  /** Names of the columns that are the index. */
  index: Array<string>;
  /** Library of the data frame. */
  library: DataframeLibrary;
  /** Datasets that it is made from, as `slug@sha256`. */
  loads?: Array<string>;
  /** Identity of what is published: the sha256 of producer, variable and sources. It stays the same when only the data change. */
  logical_id: ArtifactId;
  /** Producer of the cell that published it, such as `notebooks/analysis.py`. */
  producer?: string | null;
  /** Time of its publication, in milliseconds since 1970 (UTC). */
  published_unix_ms: number;
  /** Whether the variable was changed by a cell without a producer after the one that made it. */
  rebound_by_scratch: boolean;
  /** Number of rows. */
  rows: number;
  /** Session that published it. */
  session: string;
  /** The sha256 of its Parquet file, by which the artifact store has it. */
  sha256: ArtifactId;
  /** Variable that was published, if it had a name. */
  variable?: string | null;
}

/** An object of the API. */
export interface DatasetVersionList {
  data: Array<DatasetVersion>;
  object: "list";
}

/** The result of a decision about a try. */
export interface DecidedTry {
  /** Number of its cell. */
  cell: number;
  /** Whether it was kept. */
  kept: boolean;
}

/** A decision, and how often it was made. */
export type Decision = { at: number; bytes_down: number; bytes_up: number; count: number; session?: string | null } & ({ decision: string; host: string; kind: "egress"; method: string; port: number; reason: string } | { kind: "quota"; limit: number; quota: string });

/** An object of the API. */
export interface DecisionList {
  data: Array<Decision>;
  object: "list";
}

/** A deleted object. */
export interface Deleted {
  /** `true`. */
  deleted: boolean;
  /** Its ID or path. */
  id: string;
  /** Type of the object, followed by `.deleted`. */
  object: string;
}

/** A limit that a cell exceeded. */
export interface Exceeded {
  /** Amount that was used or requested, if known. */
  actual: number;
  /** Whether the kernel was lost. The execution's state says whether its variables were also lost. */
  kernel_lost: boolean;
  /** Its value, in bytes or pieces. */
  limit: number;
  /** The limit. */
  which: Resource;
}

/** An exception that a cell raised, with secrets redacted. */
export interface Exception {
  /** The name of the exception's type. */
  exception: string;
  /** The user's frames, outermost first. */
  frames: Array<ExceptionFrame>;
  /** The line in the user's code. */
  line: number | null;
  /** Its message. */
  message: string;
  /** Notes added to the exception. */
  notes: Array<string>;
  /** The traceback as text, of the user's frames only. */
  traceback: string;
  /** Whether a text was truncated. */
  truncated: boolean;
}

/** One frame of a traceback. */
export interface ExceptionFrame {
  /** Name of the file. */
  file: string;
  /** Name of the function. */
  function: string | null;
  /** Line in the file. */
  line: number | null;
  /** Source code of the line. */
  source: string | null;
}

/** Result of a program. */
export interface ExecuteAnswer {
  /** Duration in milliseconds. */
  execution_time_ms: number;
  /** Exit code; 128 + n if signal n killed the program; -1 if it timed out or packages could not be installed. */
  exit_code: number;
  /** Files in `$OUTPUT_DIR` and `/tmp/output`: base64 by name, with slashes for folders. Omitted if there are none. */
  files_produced?: Record<string, string>;
  /** Files there that are not in `files_produced`, with reasons. Omitted if there are none. */
  files_skipped?: Array<Record<string, any>>;
  /** `success` if it exited with 0, otherwise `error`. */
  status: string;
  /** Output to stderr, truncated in the same way, followed by notes such as a timeout. */
  stderr: string;
  /** Output to stdout. Above 10,000,000 bytes, a line replaces the middle. */
  stdout: string;
}

/** Code to run in its own sandbox. */
export interface ExecuteRequest {
  /** The program. */
  code?: string | null;
  /** Files in the program's folder: base64 by name; only the last path component of a name is used. */
  files?: Record<string, string> | null;
  /** Packages to install, as requirement strings. */
  requirements?: Array<string> | null;
  /** Timeout in seconds; 30 if it is absent or not positive. */
  timeout_seconds?: number | null;
}

/** An input of a run. */
export interface ExportedInput {
  /** Bytes as base64; absent if they are omitted. */
  data?: string | null;
  /** Format of the bytes. */
  format: InputFormat;
  /** Name in the code. */
  name: string;
  /** Reason that the bytes are omitted. */
  omitted?: string | null;
  /** SHA-256 of the bytes, if it is known. */
  sha256?: string | null;
}

/** Effect of a call of a connector's function. */
export type FetchEffect = "reads" | "writes";

/** A call of a connector. */
export interface FetchRecord {
  /** The arguments with defaults; long ones are cut, which "…" marks. */
  arguments: Record<string, any>;
  /** The table as Parquet, if the answer is one. */
  artifact?: ArtifactRef | null;
  /** Size of the answer in bytes. */
  bytes?: number | null;
  /** Whether the answer is that of an earlier equal call. */
  cached: boolean;
  /** Names of the rows' fields. */
  columns?: Array<string>;
  /** The connector. */
  connector: string;
  /** Duration of the call in milliseconds. */
  duration_ms: number;
  /** Message of the failure. */
  error?: string | null;
  /** Time at which the answer arrived, as RFC 3339; for a cached one, the time of the first call's answer. */
  fetched_at?: string | null;
  /** The function, by its name in code. */
  function: string;
  /** The first 5 rows. */
  head?: Array<any>;
  /** Reason that the table could not be stored. */
  note?: string | null;
  /** `ok`, `rehearsed` for a call that was not made, `canceled`, or the kind of the failure: `unauthorized`, `payment_required`, `rate_limit`, `provider`, `empty_data`, `parse`, `invalid_parameter`, `timeout` or `not_granted`. */
  outcome: string;
  /** Seconds after which the call may succeed, if it failed because of a rate limit and that is known. */
  retry_after?: number | null;
  /** Number of rows, if the answer is a table or a list of objects. */
  row_count?: number | null;
  /** The last 5 rows, without those in `head`. */
  tail?: Array<any>;
}

/** A chart. */
export interface Figure {
  /** Text alternative; only figures emitted with `save_figure` have one. */
  alt?: string | null;
  /** Its panels. */
  axes: Array<Axes>;
  /** Height of the image in pixels. */
  height: number | null;
  /** The image as PNG; null if there is none. */
  image: ArtifactRef | null;
  /** Library that drew it. */
  library: FigureLibrary;
  /** Name of the figure, such as a label, a variable's name or `figure 1`. */
  name: string | null;
  /** A note for the reader. */
  note?: string | null;
  /** The displayed data, at most 1,000 points of each series. */
  series: Array<Series>;
  /** The Vega-Lite specification as JSON; null if it was not drawn from one. */
  spec: ArtifactRef | null;
  /** Its title. */
  title: string | null;
  /** Whether an image, a specification or data was omitted or truncated. */
  truncated: boolean;
  /** Width of the image in pixels. */
  width: number | null;
}

/** A library that draws charts. */
export type FigureLibrary = "matplotlib" | "altair" | "vega-lite";

/** A file, link or directory that differs from a snapshot. */
export interface FileDifference {
  /** Kind of the difference. */
  change: ChangeKind;
  /** Path; the path of a directory ends with `/`. */
  path: string;
}

/** Files of a sandbox. */
export interface FileList {
  /** Regular files below `/workspace` and `/tmp/output`. */
  data: Array<ListedFile>;
  /** Whether there are more files than are listed. */
  has_more: boolean;
  /** `list`. */
  object: string;
  /** Files that are not listed, with reasons. */
  skipped: Array<SkippedFile>;
}

/** A file that was written. */
export interface FileWritten {
  /** Its size. */
  bytes: number;
  /** `session.file`. */
  object: string;
  /** Its path in the sandbox. */
  path: string;
}

/** A finding about the data, such as a line that covers little of its axis. */
export interface Finding {
  /** Kind of the finding, such as `low_coverage`. */
  code: string;
  /** Numbers and names that belong to the finding. */
  details?: any;
  /** Description of the finding. */
  message: string;
  /** The series, column or source concerned. */
  series?: string | null;
}

/** Options for forking a session. */
export interface ForkRequest {
  /** Number of new sessions, at most 16. */
  count?: number;
  /** Whether random generators get new seeds in each new session, also those that code has made itself with `random` and numpy. Otherwise all go on with the same random numbers. */
  reseed?: boolean;
}

/** The sessions of a fork. */
export interface Forked {
  /** IDs of the new sessions. */
  ids: Array<string>;
  /** `session.fork`. */
  object: string;
  /** ID of the session that was forked. */
  parent: string;
  /** The new sessions. */
  sessions: Array<SessionAnswer>;
}

/** Data in a request: one of `value`, `data` and `artifact`. */
export interface Given {
  /** The sha256 of one of the caller's artifacts, in `format`. */
  artifact?: string | null;
  /** Bytes as base64, in `format`. */
  data?: string | null;
  /** `csv`, `tsv`, `parquet`, `json`, `ndjson`, `arrow`, `xlsx`, `bytes`, or `value` for a JSON document. */
  format?: string | null;
  /** Any JSON value, bound as the equivalent Python object. It goes there as it was sent: numbers have any size. */
  value?: Record<string, any> | null;
}

/** Strictness of the checks before code runs, from the least to the most. */
export type Guard = "off" | "standard" | "strict";

/** Parts that a hibernated session has lost, and those that are kept. */
export interface Hibernated {
  /** Size in bytes of its variables and files on disk; absent if its files are still in memory. */
  kept_bytes?: number | null;
  /** Number of checkpoints that are gone. */
  lost_checkpoints: number;
  /** Whether it had variables, which are gone. */
  lost_variables: boolean;
}

/** Method by which a dataset is made available in a sandbox. */
export type How = "mounted" | "cloned" | "copied" | "streamed";

/** A picture. */
export interface Image {
  /** Height in pixels, read from the bytes; null for a vector image. */
  height: number | null;
  /** The bytes; null if they exceeded the limit of a cell or could not be stored. */
  image: ArtifactRef | null;
  /** Its format. */
  mime: ImageMime;
  /** Name of the displayed variable; null for an expression. */
  name: string | null;
  /** Width in pixels, read from the bytes; null for a vector image. */
  width: number | null;
}

/** An image. */
export interface ImageAnswer {
  /** Size of its files. */
  bytes: number;
  /** Time of its build, in seconds since 1970. */
  created_at: number;
  id: string;
  /** Whether the server's sandboxes start from it. */
  in_use: boolean;
  name: string;
  /** Notes of its build. */
  notes: Array<string>;
  /** Number of its packages. */
  packages: number;
  /** Version of Python. */
  python: string;
}

/** Format of a picture. */
export type ImageMime = "image/png" | "image/jpeg" | "image/svg+xml" | "image/gif" | "image/webp";

/** An input that is bound. */
export interface InputAnswer {
  bytes: number;
  format: InputFormat;
}

/** An input that was bound. */
export interface InputBound {
  /** Its size. */
  bytes: number;
  /** Detected properties, in words, if the file is not plain: separator, decimal mark, encoding, compression, sheet, and columns that are left as text because their values could mean two things. The next cell's `note` says it, too. */
  detected: Array<string>;
  format: InputFormat;
  /** Its name in the code. */
  name: string;
  /** `session.input`. */
  object: string;
}

/** Format of an input. */
export type InputFormat = "csv" | "tsv" | "parquet" | "json" | "ndjson" | "arrow" | "xlsx" | "bytes" | "value";

/** Input for a process. */
export interface InputRequest {
  /** Close standard input after it. */
  close?: boolean;
  /** The input, at most 1048576 bytes. */
  data?: string;
  /** Encoding of `data`: `text` or `base64`. */
  encoding?: string;
}

/** Result of an interrupt. */
export interface Interrupted {
  /** Whether code was running. */
  interrupted: boolean;
  /** `session.interrupt`. */
  object: string;
}

/** A key, without its secret. */
export interface Key {
  /** Whether it can make, list and revoke keys. */
  admin: boolean;
  /** Connectors that its code can call; `*` means all. */
  connectors: Array<string>;
  /** In seconds since 1970, like the others. */
  created_at: number;
  expires_at?: number | null;
  id: string;
  last_used_at?: number | null;
  /** Widest network of its code, if it is narrower than the server's. */
  max_network?: string | null;
  minimum_backend?: BackendKind | null;
  name: string;
  /** `key`. */
  object: string;
  /** Quotas that differ from the configured ones, by name; `null` stands for no limit. */
  quotas: Record<string, any>;
  revoked_at?: number | null;
  /** Whether it is accepted: it has neither expired nor been revoked. */
  usable: boolean;
}

/** An object of the API. */
export interface KeyList {
  data: Array<Key>;
  object: "list";
}

/** A key to make. */
export interface KeyRequest {
  /** Connectors that its code can call; `*` means all. By default none. */
  connectors?: Array<string>;
  /** Time in seconds after which it expires, at most ten years; by default it does not. */
  expires_in?: number | null;
  /** Widest network of its code: `none`, `loopback` or `egress`. By default that of the server, which is never exceeded. */
  max_network?: string | null;
  /** Weakest backend behind which its code may run: `process`, `gvisor` or `microvm`. */
  minimum_backend?: string | null;
  /** Name, which no other usable key has: 1 to 100 characters. */
  name?: string;
  /** Quotas that differ from the configured ones, by name; `null` removes a limit. */
  quotas?: Record<string, any>;
}

/** Kind of an artifact. */
export type Kind = "dataframe" | "figure" | "image" | "rich" | "file" | "chart" | "dataset" | "result";

/** Something that the process backend does and that another backend may not do. */
export type Lack = "rescue" | "checkpoints" | "forks" | "requirements" | "higher_limits" | "warm_other_limits" | "exact_memory_limit" | "file_limit" | "hidden_processes" | "full_terminals";

/** The language of a cell. */
export type Language = "python" | "bash" | "javascript" | "r";

/** Properties of a link. */
export interface LinkRequest {
  /** Time in seconds for which it is valid: 1 to 604800, by default 3600. */
  valid_s?: number | null;
}

/** A regular file of a sandbox. */
export interface ListedFile {
  /** Its size in bytes. */
  bytes: number;
  /** Time of the last write, in milliseconds since 1970. */
  modified_unix_ms: number;
  /** Its path in the sandbox; control characters are escaped, and a file with such a name cannot be requested. */
  path: string;
}

/** A server that may have some of what is listed, and did not answer. */
export interface MissingServer {
  /** Code of the error: `gateway_unreachable` or `gateway_failed`. */
  code: string;
  /** ID of the server, with which the IDs of its sessions begin after `sess_`. */
  id: string;
  /** The failed action. */
  message: string;
}

/** A dataset of a session. */
export interface Mounted {
  /** Its bytes. */
  bytes: number;
  /** Method by which it was made available. */
  how: How;
  /** Its file name in `/tmp/data`. It differs from the requested name if that has unsafe characters or is taken. */
  name: string;
  /** Its path in the sandbox. */
  path: string;
  /** Reason that the file was not mounted directly. */
  reason?: string | null;
  /** The requested name. */
  requested: string;
  /** Its rows and columns, if they are known. */
  shape: Shape;
}

/** An object of the API. */
export interface MountedList {
  data: Array<Mounted>;
  object: "list";
}

/** A checkpoint that was just made. */
export interface NewCheckpoint {
  /** Estimate of the memory that it took up when it was made, in bytes. It grows with what later cells change. */
  bytes: number;
  /** Number of the last cell before it; 0 if none had run. */
  cell: number;
  /** Time at which it was made, in milliseconds since 1970. */
  created_unix_ms: number;
  /** The oldest checkpoint, if it was dropped because a session keeps at most 8. */
  evicted?: Checkpoint | null;
  /** Number of files that it holds. */
  files: number;
  /** Id, which the session never uses again. */
  id: string;
  /** Name, if it was given one. */
  name?: string | null;
  /** Id of the checkpoint that the session had made or gone back to last; absent if its variables did not come from one. */
  parent?: string | null;
}

/** A key that has just been made. */
export interface NewKey {
  /** Whether it can make, list and revoke keys. */
  admin: boolean;
  /** Connectors that its code can call; `*` means all. */
  connectors: Array<string>;
  /** In seconds since 1970, like the others. */
  created_at: number;
  expires_at?: number | null;
  id: string;
  last_used_at?: number | null;
  /** Widest network of its code, if it is narrower than the server's. */
  max_network?: string | null;
  minimum_backend?: BackendKind | null;
  name: string;
  /** `key`. */
  object: string;
  /** Quotas that differ from the configured ones, by name; `null` stands for no limit. */
  quotas: Record<string, any>;
  revoked_at?: number | null;
  /** The secret, which is not stored and not shown again. */
  secret: string;
  /** Whether it is accepted: it has neither expired nor been revoked. */
  usable: boolean;
}

/** A value that a cell displayed. */
export type Output = Dataframe & { type: "dataframe" } | Figure & { type: "figure" } | Image & { type: "image" } | Primitive & { type: "primitive" } | Rich & { type: "rich" } | Chart & { type: "chart" } | Answer & { type: "result" } | Exception & { type: "exception" };

/** A page of a value. */
export type OutputPage = TablePage | TextPage;

/** The caller's own key. */
export interface OwnKey {
  /** Whether it can make, list and revoke keys. */
  admin: boolean;
  /** Connectors that its code can call, as they were granted; `*` grants all. */
  connectors: Array<string>;
  /** Creation time in seconds since 1970. */
  created_at?: number | null;
  /** Time from which it is rejected, in seconds since 1970; absent if it does not expire. */
  expires_at?: number | null;
  /** ID, which owns what the key makes; `local` without keys. */
  id: string;
  /** Widest network that its code can use. */
  max_network: string;
  /** Weakest backend behind which its code may run, if one is set. */
  minimum_backend?: string | null;
  /** Name; absent without keys. */
  name?: string | null;
  /** `key`. */
  object: string;
  /** Every quota with its limit and use. */
  quotas: Array<QuotaStanding>;
}

/** Sandboxes of the server. */
export interface PoolAnswer {
  /** Modules of the image that could not be imported, with reasons. */
  failed_modules: Array<string>;
  /** Number of sandboxes that sessions have. */
  in_use: number;
  /** Number of sandboxes that wait for a session. */
  ready: number;
  /** Number of sandboxes that sessions have taken since the server was started. */
  taken: number;
}

/** A port on which a program listens. */
export interface Port {
  /** Path at which the gateway serves it to callers with a key. */
  path: string;
  /** Its number. */
  port: number;
}

/** A link to a port, which works without a key. */
export interface PortLink {
  /** Expiry, in seconds since 1970. */
  expires_at: number;
  /** Host at which the path leads to a host of the port's own, if `http.preview_domain` is set. */
  host?: string | null;
  /** Its path at the gateway. Who has it can do all that the program lets its visitors do. */
  path: string;
}

/** An object of the API. */
export interface PortList {
  data: Array<Port>;
  object: "list";
}

/** A scalar. */
export interface Primitive {
  /** Name of the displayed variable; null for an expression. */
  name: string | null;
  /** A note for the reader. */
  note?: string | null;
  /** Name of its Python type. */
  python_type: string;
  /** Whether a text was truncated. */
  truncated: boolean;
  /** The value; non-finite numbers and integers beyond 2^53 are strings. */
  value: Scalar;
}

/** A process of a session. */
export interface Process {
  /** The program and its arguments. */
  command: Array<string>;
  /** Time of its end, in milliseconds since 1970. */
  ended_unix_ms: number | null;
  /** Exit code, if it exited. */
  exit_code: number | null;
  /** Its ID in the session, such as `p1`. */
  id: string;
  /** `session.process`. */
  object: string;
  /** File of the sandbox with the first 16 MiB of its output. */
  output_file: string;
  /** ID of the session. */
  session: string;
  /** Name of the signal that killed it, such as `SIGTERM`. */
  signal: string | null;
  /** Time of its start, in milliseconds since 1970. */
  started_unix_ms: number;
  /** Its state. */
  state: ProcessState;
  /** Whether it was started with an open standard input. */
  stdin: boolean;
  /** Whether it was started with a terminal. */
  terminal: boolean;
}

/** An object of the API. */
export interface ProcessList {
  data: Array<Process>;
  object: "list";
}

/** Part of the output of a process. */
export interface ProcessOutput {
  /** Whether the process has ended and this is the end of its output. */
  eof: boolean;
  /** Number of bytes after the requested offset that are no longer kept. */
  lost: number;
  /** Offset from which to read on. */
  next_offset: number;
  /** `session.process_output`. */
  object: string;
  /** Offset of the first byte. */
  offset: number;
  /** Text that the process wrote to stdout and stderr. Bytes that are not UTF-8 are replaced. */
  text: string;
  /** Number of bytes that the process has written until now. */
  total: number;
}

/** A program to start. */
export interface ProcessRequest {
  /** The program and its arguments; no shell reads it. */
  command?: Array<string>;
  /** Working directory; by default `/workspace`. */
  directory?: string | null;
  /** Environment variables, in addition to those of the sandbox. */
  env?: Record<string, string>;
  /** Keep standard input open for the route `input`. Otherwise it is empty. */
  stdin?: boolean;
  terminal?: TerminalRequest | null;
}

/** State of a process. */
export type ProcessState = "running" | "exited" | "killed" | "lost";

/** A file that a cell created or changed. */
export interface ProducedFile {
  /** Its size in bytes. */
  bytes: number;
  /** Its path relative to `/workspace` or `/tmp/output`: safe components only. */
  name: string;
  /** Its path in the sandbox. */
  path: string;
  /** The artifact with its content. */
  sha256: string;
}

/** State of a protection. */
export type ProtectionState = { state: "active" } | { reason: string; state: "degraded" } | { state: "disabled" };

/** A published dataset and its current version. */
export interface PublishedDataset {
  /** Time of its first version, in milliseconds since 1970 (UTC). */
  created_unix_ms: number;
  /** Its current version. */
  current: DatasetVersion;
  /** Description of its contents. */
  description: string;
  /** Remarks, such as on sources and gaps. */
  notes: Array<string>;
  /** Name by which code loads it. */
  slug: string;
  /** Words by which it is found. */
  tags: Array<string>;
  /** Title for people. */
  title: string;
  /** Number of its versions. */
  versions: number;
}

/** An object of the API. */
export interface PublishedDatasetList {
  data: Array<PublishedDataset>;
  object: "list";
}

/** A quota of an owner. */
export interface QuotaStanding {
  /** Its limit; absent if it is unlimited. */
  limit?: number | null;
  /** Name of the quota. */
  quota: string;
  /** Used amount now or today (UTC); absent if it is not counted in one place. */
  used?: number | null;
}

/** Summary of the exception that a cell raised; the `exception` output has the details. */
export interface RaisedReport {
  /** The line in the user's code. */
  line: number | null;
  /** Its message. */
  message: string;
  /** The name of the exception's type. */
  type: string;
}

/** A displayed output. */
export interface RecordedOutput {
  /** Artifacts with its bytes. */
  artifacts?: Array<ArtifactRef>;
  /** Name of the variable or the figure, if any. */
  name?: string | null;
  /** SHA-256 of the output as JSON, which names its artifacts by their hashes. */
  sha256: string;
  /** Type of the output, such as `dataframe`. */
  type: string;
}

/** An error in a cell or in its declaration. */
export interface Rejection {
  /** Code of the error, such as `unknown_alias`; `guard` for code that violates a rule of the guard. */
  code: string;
  /** The field of the request, such as `inputAliases[0]`. */
  field?: string | null;
  /** The line of the code. */
  line: number | null;
  /** Description of the problem and how to fix it. */
  message: string;
  /** The guard's rule. */
  rule?: string | null;
  /** Valid values of the field, if they can be listed. */
  valid?: Array<string>;
}

/** Result of a replay. */
export interface Replay {
  /** Differences between the run and its record. */
  differences?: Array<RunDifference>;
  /** `run.replay`. */
  object: string;
  /** Reasons that it cannot be replayed. */
  reasons?: Array<string>;
  /** Result for this run: `equal`, `differs` or `impossible`. */
  result: ReplayResult;
  /** ID of the run that was replayed. */
  run: string;
  /** Every run of the session that was replayed, from its first in the sandbox to this one. */
  runs: Array<ReplayedRun>;
}

/** Result of a replay. */
export type ReplayResult = "equal" | "differs" | "impossible";

/** A run that was replayed. */
export interface ReplayedRun {
  /** Differences between the run and its record. */
  differences?: Array<RunDifference>;
  /** ID of the run that replayed it. */
  replay: string;
  /** Result: `equal` or `differs`. */
  result: ReplayResult;
  /** ID of the recorded run. */
  run: string;
}

/** One form of a value. */
export interface Representation {
  /** Its bytes. */
  artifact: ArtifactRef;
  /** Media type, as reported by the value. */
  mime: string;
}

/** Condition for making a standby that keeps the state from before a cell. */
export type Rescue = "off" | "idle" | "on";

/** A limited resource. */
export type Resource = "memory" | "processes" | "disk" | "inodes" | "file_bytes" | "open_files" | "output_bytes";

/** A value in several representations. */
export interface Rich {
  /** The other forms. */
  bundle: Array<Representation>;
  /** Name of the displayed variable; null for an expression. */
  name: string | null;
  /** The plain text form. */
  text: string;
  /** Whether the text was truncated or forms were omitted. */
  truncated: boolean;
}

/** Checkpoint to roll back to. */
export interface RollbackRequest {
  /** ID or name of the checkpoint. */
  checkpoint: string;
}

/** The result of a rollback. */
export interface RolledBack {
  /** Number of the last cell that has run. The next cell gets the number after it. */
  cell: number;
  /** The checkpoint, which is kept. */
  checkpoint: Checkpoint;
}

/** A run: `object` is `run`, `created_at` is its start in seconds since 1970, and the rest is its record. */
export interface Run {
  /** Whether the session was reset after the previous run. */
  after_reset?: boolean;
  /** Backend of the sandbox. */
  backend: string;
  /** Options of the cell. */
  call: RunCall;
  /** Number of the cell in its session; 0 if it could not be run. */
  cell: number;
  /** Code; absent if it has more than 256 KiB. */
  code?: string | null;
  /** SHA-256 of the code. */
  code_sha256: string;
  /** Start in seconds since 1970. */
  created_at: number;
  /** Dependencies that the run could use and that the record does not contain. */
  depends_on?: Array<RunDependency>;
  /** Duration of each stage. */
  durations: RunDurations;
  /** Exception, limit or failure that ended the run, if any. */
  error?: RunError | null;
  /** Calls of connectors, at most 200. */
  fetches?: Array<RunFetch>;
  /** Files that were created or changed. */
  files: Array<ProducedFile>;
  /** ID of the run. */
  id: string;
  /** Image of the sandbox. */
  image: RunImage;
  /** Inputs that were bound, in the order of their names. */
  inputs: Array<RunInput>;
  /** IDs of the layers with additional packages. */
  layers?: Array<string>;
  /** Limits of the sandbox and the cell. */
  limits: Record<string, any>;
  /** Network that code can use: `none`, `loopback` or `egress`. */
  network: string;
  /** `run`. */
  object: string;
  /** Outcome of the cell, or `error` if the sandbox failed. */
  outcome: string;
  /** Displayed outputs. */
  outputs: Array<RecordedOutput>;
  /** Previous run in the same sandbox, whose variables and files this one found; absent if it is the first. */
  parent?: string | null;
  /** Checkpoint that the state before this run comes from, if any: made before it, or rolled back to. */
  parent_checkpoint?: string | null;
  /** State of each protection. */
  protections: Record<string, any>;
  /** Run that this one replays, if any. */
  replay_of?: string | null;
  /** ID of the session. */
  session: string;
  /** Setup of the session. */
  setup: RunSetup;
  /** Start in milliseconds since 1970. */
  started_ms: number;
  /** State of the session's variables. */
  state: State;
  /** Output to stderr. */
  stderr: RunStream;
  /** Output to stdout. */
  stdout: RunStream;
  /** Whether it ran as a try. A try that was discarded is never the parent of a run. */
  tried?: boolean;
  /** Wall around the sandbox in addition to the host's kernel, if any. */
  wall?: string | null;
}

/** Options of a cell. */
export interface RunCall {
  /** Arguments of the code as a script, beginning with its name; absent for the name alone. */
  argv?: Array<string>;
  /** Whether files are collected. */
  collect_files: boolean;
  /** Whether the value of a trailing expression is displayed. */
  echo: boolean;
  /** Language of the code. */
  language: Language;
  /** Whether `atexit` handlers ran at its end. */
  last: boolean;
  /** Number of the first line. */
  line: number;
  /** Statements or one expression. */
  mode: CellMode;
  /** File name in tracebacks. */
  name: string;
  /** Additional packages. */
  requirements?: Array<string>;
  /** Whether names that it binds are kept. */
  store: boolean;
  /** Timeout in milliseconds. */
  timeout_ms: number;
}

/** Something that a run can use and that its record does not contain. */
export type RunDependency = "files" | "commands" | "processes" | "datasets" | "project" | "volume" | "egress" | "tool_results";

/** Something that two runs made differently. */
export interface RunDifference {
  /** Value or hash in the recorded run; absent if it has none. */
  recorded?: string | null;
  /** Value or hash in the replay; absent if it has none. */
  replayed?: string | null;
  /** `outcome`, `error`, `stdout`, `stderr`, `output N` (from 1) or `file NAME`. */
  what: string;
}

/** Durations in milliseconds. */
export interface RunDurations {
  /** After that: files were collected and outputs attributed. */
  finish_ms: number;
  /** Until code began to run: packages, the sandbox and its inputs. */
  prepare_ms: number;
  /** While code ran. */
  run_ms: number;
}

/** Reason that a run did not complete. */
export interface RunError {
  /** Message, at most 1,000 characters. */
  message: string;
  /** Name of the exception, limit, rule or failure. */
  type: string;
}

/** A run with the runs before it in its sandbox, their code and their inputs. */
export interface RunExport {
  /** Reason that runs before these are missing. */
  gap?: string | null;
  /** Inputs of these runs. */
  inputs: Array<ExportedInput>;
  /** `run.export`. */
  object: string;
  /** The runs, with their code; the last is the one that is exported. */
  runs: Array<RunRecord>;
}

/** A call of a connector. */
export interface RunFetch {
  /** SHA-256 of the arguments as JSON, long ones truncated. */
  arguments_sha256: string;
  /** Whether the answer is that of an earlier equal call. */
  cached: boolean;
  /** Connector. */
  connector: string;
  /** Function. */
  function: string;
  /** `ok`, `canceled`, or the kind of the failure. */
  outcome: string;
  /** SHA-256 of the table that was fetched, if it was one. */
  sha256?: string | null;
}

/** An image. */
export interface RunImage {
  /** Content address. */
  digest: string;
  /** Name. */
  name: string;
  /** Version of Python. */
  python: string;
}

/** An input. */
export interface RunInput {
  /** Number of bytes. */
  bytes: number;
  /** Format. */
  format: InputFormat;
  /** Name in the code. */
  name: string;
  /** SHA-256 of its bytes; absent if it could not be read again. */
  sha256?: string | null;
}

/** An object of the API. */
export interface RunList {
  data: Array<Run>;
  object: "list";
}

/** One execution of a cell. */
export interface RunRecord {
  /** Whether the session was reset after the previous run. */
  after_reset?: boolean;
  /** Backend of the sandbox. */
  backend: string;
  /** Options of the cell. */
  call: RunCall;
  /** Number of the cell in its session; 0 if it could not be run. */
  cell: number;
  /** Code; absent if it has more than 256 KiB. */
  code?: string | null;
  /** SHA-256 of the code. */
  code_sha256: string;
  /** Dependencies that the run could use and that the record does not contain. */
  depends_on?: Array<RunDependency>;
  /** Duration of each stage. */
  durations: RunDurations;
  /** Exception, limit or failure that ended the run, if any. */
  error?: RunError | null;
  /** Calls of connectors, at most 200. */
  fetches?: Array<RunFetch>;
  /** Files that were created or changed. */
  files: Array<ProducedFile>;
  /** ID of the run. */
  id: string;
  /** Image of the sandbox. */
  image: RunImage;
  /** Inputs that were bound, in the order of their names. */
  inputs: Array<RunInput>;
  /** IDs of the layers with additional packages. */
  layers?: Array<string>;
  /** Limits of the sandbox and the cell. */
  limits: Record<string, any>;
  /** Network that code can use: `none`, `loopback` or `egress`. */
  network: string;
  /** Outcome of the cell, or `error` if the sandbox failed. */
  outcome: string;
  /** Displayed outputs. */
  outputs: Array<RecordedOutput>;
  /** Previous run in the same sandbox, whose variables and files this one found; absent if it is the first. */
  parent?: string | null;
  /** Checkpoint that the state before this run comes from, if any: made before it, or rolled back to. */
  parent_checkpoint?: string | null;
  /** State of each protection. */
  protections: Record<string, any>;
  /** Run that this one replays, if any. */
  replay_of?: string | null;
  /** ID of the session. */
  session: string;
  /** Setup of the session. */
  setup: RunSetup;
  /** Start in milliseconds since 1970. */
  started_ms: number;
  /** State of the session's variables. */
  state: State;
  /** Output to stderr. */
  stderr: RunStream;
  /** Output to stdout. */
  stdout: RunStream;
  /** Whether it ran as a try. A try that was discarded is never the parent of a run. */
  tried?: boolean;
  /** Wall around the sandbox in addition to the host's kernel, if any. */
  wall?: string | null;
}

/** Setup of a session. */
export interface RunSetup {
  /** Level of the check before code runs. */
  guard: Guard;
  /** Sets of names that are bound at the start. */
  prelude: Array<string>;
  /** Whether variables survive a cell that kills its kernel. */
  rescue: Rescue;
  /** Skills that code could read. */
  skills?: Array<RunSkill>;
  /** Code that ran before the first cell. */
  snippets?: Array<RunSnippet>;
}

/** A skill of a session. */
export interface RunSkill {
  /** ID in its store; absent if it came with the request. */
  id?: string | null;
  /** Name, and the name of its folder. */
  name: string;
  /** SHA-256 of its archive. */
  sha256: ArtifactId;
  /** Version. */
  version: string;
}

/** Code that prepared a session. */
export interface RunSnippet {
  /** Code, if the session's owner gave it; the operator's code is not repeated. */
  code?: string | null;
  /** File name in tracebacks. */
  name: string;
  /** SHA-256 of the code. */
  sha256: string;
}

/** Text that was written to a stream. */
export interface RunStream {
  /** Number of bytes that were written. */
  bytes: number;
  /** SHA-256 of the text that was kept. */
  sha256: string;
  /** Whether the kept text is shortened. */
  truncated: boolean;
}

/** The sandbox of a cell and its protections. */
export interface SandboxJson {
  /** The backend. */
  backend: string;
  /** The image's id. */
  image: string;
  /** Features that it lacks compared with the sandboxes of the process backend. */
  lacks?: Array<Lack>;
  /** The network that code can use, `loopback` or `egress`; missing if there is none. */
  network?: string | null;
  /** Every protection by its name. */
  protections: Record<string, ProtectionState>;
  /** Wall around the sandbox in addition to the host's kernel, such as `gVisor 20240729, platform systrap`. */
  wall?: string | null;
}

/** A JSON scalar. */
export type Scalar = boolean | number | string | null;

/** One line, set of bars or other set of points of a chart. */
export interface Series {
  /** Number of its panel. */
  axes: number;
  /** Further values, one per point, by name: `low` and `high` of error bars and whiskers, `first_quartile`, `third_quartile` and the number of `outliers` of boxes, `from` and `to` of bins, `z` of cells, `low` of an area that does not begin at zero, `color` of points. */
  columns?: Record<string, Array<Scalar>>;
  /** For a line over time: the share of its axis' time range for which it has finite values, from 0 to 1. */
  coverage?: number | null;
  /** Kind of its marks. */
  kind: SeriesKind;
  /** Label in the legend. */
  label: string | null;
  /** Number of points; at most 1,000 of them are sent. */
  points: number;
  /** Positions on the horizontal axis. */
  x: Array<Scalar>;
  /** Values, one per position. */
  y: Array<Scalar>;
}

/** Kind of a series' marks. */
export type SeriesKind = "line" | "bar" | "scatter" | "area" | "image" | "hist" | "pie" | "box" | "heatmap" | "other";

/** The server. */
export interface Server {
  /** Builds that run on this machine, the oldest first: of images, and of requirements of cells. */
  builds: Array<BuildAnswer>;
  /** Images on this machine, the last that was built first. */
  images: Array<ImageAnswer>;
  /** `server`. */
  object: string;
  /** Absent where code runs at a server that keeps no sessions. */
  pool?: PoolAnswer | null;
  version: string;
}

/** A session. */
export interface Session {
  /** Number of cells that it has run. */
  cells: number;
  /** Connectors that its code can call. */
  connectors: Array<string>;
  /** In seconds since 1970, like the others. */
  created_at: number;
  datasets: number;
  /** Time at which it ends if it is not used. */
  expires_at: number;
  guard: Guard;
  id: string;
  /** Idle timeout in seconds. */
  idle_timeout: number;
  inputs: Record<string, InputAnswer>;
  last_used_at: number;
  /** Limits of the session; each can be lowered when a session is created. */
  limits: Record<string, any>;
  /** Network that its code can use. */
  network: string;
  /** `session`. */
  object: string;
  /** Action after the idle timeout: `end` or `hibernate`. */
  on_idle: string;
  prelude: Array<string>;
  /** Project whose datasets its code can publish and load. */
  project?: string | null;
  rescue: Rescue;
  /** Skills that its code finds in `/skills`. */
  skills?: Array<SessionSkill>;
  /** Whether code is running in it, or it is hibernated. */
  status: SessionStatus;
  toolset: ToolsetName;
  /** Number of the cell that was tried and is neither kept nor discarded. Other requests are rejected until it is. */
  undecided_try?: number | null;
  /** Volume whose files it has in `/workspace/volume`. */
  volume?: VolumeOfSession | null;
}

/** A session. */
export interface SessionAnswer {
  /** Number of cells that it has run. */
  cells: number;
  /** Connectors that its code can call. */
  connectors: Array<string>;
  /** In seconds since 1970, like the others. */
  created_at: number;
  datasets: number;
  /** Time at which it ends if it is not used. */
  expires_at: number;
  guard: Guard;
  id: string;
  /** Idle timeout in seconds. */
  idle_timeout: number;
  inputs: Record<string, InputAnswer>;
  last_used_at: number;
  /** Limits of the session; each can be lowered when a session is created. */
  limits: Record<string, any>;
  /** Network that its code can use. */
  network: string;
  /** `session`. */
  object: string;
  /** Action after the idle timeout: `end` or `hibernate`. */
  on_idle: string;
  prelude: Array<string>;
  /** Project whose datasets its code can publish and load. */
  project?: string | null;
  rescue: Rescue;
  /** Skills that its code finds in `/skills`. */
  skills?: Array<SessionSkill>;
  /** Whether code is running in it, or it is hibernated. */
  status: SessionStatus;
  toolset: ToolsetName;
  /** Number of the cell that was tried and is neither kept nor discarded. Other requests are rejected until it is. */
  undecided_try?: number | null;
  /** Volume whose files it has in `/workspace/volume`. */
  volume?: VolumeOfSession | null;
}

/** Something that happened to a session. */
export type SessionEvent = { at_unix_ms: number; cell: number } & ({ checkpoint: string; event: "checkpoint"; name?: string | null } | { checkpoint: string; event: "checkpoint_dropped" } | { checkpoint: string; event: "rolled_back" } | { event: "tried" } | { event: "try_kept" } | { event: "try_discarded" } | { event: "forked"; sessions: Array<string> } | { event: "forked_from"; session: string } | { event: "hibernated" } | { event: "resumed" } | { event: "rescued" } | { event: "kernel_lost" } | { event: "reset" });

/** An object of the API. */
export interface SessionEventList {
  data: Array<SessionEvent>;
  object: "list";
}

/** An object of the API. */
export interface SessionList {
  data: Array<Session>;
  /** Servers that may have more sessions of the caller and did not answer in time; absent if all have answered. */
  missing_servers?: Array<MissingServer>;
  object: "list";
}

/** A skill of a session. */
export interface SessionSkill {
  description: string;
  /** ID of the skill; absent if it came with the request. */
  id?: string | null;
  name: string;
  /** Folder in which code finds it. */
  path: string;
  version: string;
}

/** An object of the API. */
export type SessionStatus = "idle" | "busy" | "hibernated";

/** Resources that a session's sandbox uses. */
export interface SessionUsage {
  /** CPU time in milliseconds. */
  cpu_ms?: number | null;
  /** Memory in bytes. */
  memory_bytes?: number | null;
  /** Most memory that it used so far, in bytes. */
  memory_peak_bytes?: number | null;
  /** `session.usage`. */
  object: string;
  /** Number of processes and threads. */
  processes?: number | null;
  /** Whether the session has a sandbox now; one is made for its first cell. */
  sandbox: boolean;
}

/** A variable with its value. */
export interface SessionVariable {
  /** Its name. */
  name: string;
  /** `session.variable`. */
  object: string;
  /** Origin of the variable, if a cell with a producer made it. */
  origin?: VariableOrigin | null;
  /** Its value, as a cell would display it. */
  output: Output;
  /** The requested page of its rows or characters. */
  page?: OutputPage | null;
  /** The value, or the requested page, as a model reads it, if a `view` is requested. */
  text?: string | null;
}

/** The size of a table. */
export interface Shape {
  /** Whether the number is an estimate, from the length of the first rows. */
  about: boolean;
  /** Its columns; empty if the file is not a supported table. */
  columns: Array<ColumnType>;
  /** Number of rows, if they were counted or estimated. */
  rows?: number | null;
  /** Separator of a CSV file, if it is not a comma. */
  separator?: string | null;
}

/** A signal to send. */
export interface SignalRequest {
  /** Its name, such as `SIGTERM`. */
  signal: string;
}

/** A file that was not collected. */
export interface SkippedFile {
  /** Its path in the sandbox, control characters escaped. */
  path: string;
  /** Reason that the file was skipped. */
  reason: string;
}

/** State of a session's variables. */
export type State = "kept" | "rescued" | "lost";

/** A page of a table. */
export interface TablePage {
  /** Index of the first row among the stored rows, from 0. */
  first_row: number;
  /** Number of the page, from 0. */
  page: number;
  /** Number of pages. */
  pages: number;
  /** The rows, one value per column, in the form of `head`. */
  rows: Array<Array<boolean | number | string | Array<any> | Record<string, any> | null>>;
}

/** Size of a terminal in characters. */
export interface TerminalRequest {
  /** Number of columns, at most 4096. */
  columns: number;
  /** Number of rows, at most 4096. */
  rows: number;
}

/** A page of a text. */
export interface TextPage {
  /** Number of characters of the whole text. */
  chars: number;
  /** Index of the first character, from 0. */
  first_char: number;
  /** Number of the page, from 0. */
  page: number;
  /** Number of pages. */
  pages: number;
  /** The characters. */
  text: string;
}

/** A tool, for listing to a model. */
export interface Tool {
  /** Description of the tool. */
  description: string;
  /** Its name. */
  name: string;
  /** The JSON Schema of its arguments. */
  parameters: any;
}

/** An object of the API. */
export interface ToolList {
  data: Array<Tool>;
  object: "list";
}

/** Name of a toolset. */
export type ToolsetName = "interpreter" | "workbench" | "derivation" | "notebook";

/** A cell that was tried: the cell as from `POST /v1/sessions/{id}/cells`, and what it changed. */
export interface Try {
  /** The bytes of outputs and files, and fetched tables. */
  artifacts: Array<ArtifactReport>;
  /** Number of the cell in the session, starting at 1. */
  cell: number;
  /** Differences from the state before it. */
  changes: TryChanges;
  /** The code. */
  code: string;
  /** Whether the session's state does not come from it, because of a later rollback or as a discarded try. */
  discarded?: boolean;
  /** Duration of the cell in milliseconds. */
  duration_ms: number;
  /** The exception that it raised, if any. */
  error?: RaisedReport | null;
  /** Fetches from connectors, in the order of its calls. */
  fetches?: Array<FetchRecord>;
  /** Number of calls of connectors beyond the 200 that `fetches` lists. */
  fetches_dropped?: number;
  /** Files that it created or changed in `/workspace` and `/tmp/output`. */
  files: Array<ProducedFile>;
  /** Findings about its data. */
  findings?: Array<Finding>;
  /** The limit that it exceeded, if any. */
  limit?: Exceeded | null;
  /** A note for the model: lost variables, limits, and how to continue. */
  note?: string | null;
  /** `session.cell`. */
  object: string;
  /** Origins of the variables that it bound or changed, if it has a producer and completed. */
  origins?: Record<string, VariableOrigin>;
  /** Outcome: `completed`, `raised`, `interrupted`, `kernel_lost`, `limit_exceeded` or `rejected`. */
  outcome: string;
  /** Displayed outputs in order, including those before a failure. */
  outputs: Array<Output>;
  /** Number of outputs that exceeded the limit and were dropped. */
  outputs_dropped?: number;
  /** Number of the cell whose variables and files it found; absent if it is the first. */
  parent?: number | null;
  /** Reasons that the cell was rejected. */
  rejections?: Array<Rejection>;
  /** The sandbox that it ran in. */
  sandbox: SandboxJson;
  /** Files saved under `--out`. */
  saved?: Array<string>;
  /** The session's id. */
  session: string;
  /** Files that could not be collected, with reasons. */
  skipped_files?: Array<SkippedFile>;
  /** State of the session's variables: `kept`, `rescued` (they are as before the cell, which was killed) or `lost`. */
  state: State;
  /** Output to stderr, truncated in the same way. */
  stderr: string;
  /** Whether part of stderr is omitted. */
  stderr_truncated: boolean;
  /** Output to stdout. If it is truncated, a line in the middle says how much is omitted. */
  stdout: string;
  /** Whether part of stdout is omitted. */
  stdout_truncated: boolean;
  /** Whether it can be kept or discarded; otherwise the cell has ended its sandbox, with everything in it. */
  undecided: boolean;
}

/** Changes of a try. */
export interface TryChanges {
  /** Files, links and directories below `/workspace` and `/tmp` that it created, changed or removed; at most 200. */
  files: Array<FileDifference>;
  /** Number of changed files that are not listed. */
  files_omitted?: number;
  /** Variables that Python code created, changed or removed, by name. A change through another name of the same object is not detected. */
  variables: Array<ChangedVariable>;
}

/** A cell to try. */
export interface TryRequest {
  /** The code. The value of a trailing expression is displayed. */
  code?: string | null;
  /** The language of the code: `python`, `bash`, `javascript` or `r`. */
  language?: string;
  /** Producer of the variables that it makes; their origins name it. */
  producer?: string | null;
  /** Additional packages, as requirement strings. */
  requirements?: Array<string>;
  /** Timeout in seconds. */
  timeout?: number | null;
}

/** A variable. */
export interface Variable {
  /** Its name. */
  name: string;
  /** Short description of its value. */
  summary: string;
  /** Name of its Python type. */
  type: string;
}

/** An object of the API. */
export interface VariableList {
  data: Array<Variable>;
  object: "list";
}

/** Origin of a variable's value. */
export interface VariableOrigin {
  /** The sha256 of the stored tables of these calls; as many at most. */
  artifacts?: Array<ArtifactId>;
  /** The number of that cell. */
  cell: number;
  /** The calls whose answers it is made from, as `connector.function({"argument":1}) at TIME`, sorted; at most 1,000, and fewer if its cell bound more than 20 variables. */
  fetches: Array<string>;
  /** Datasets that it is made from, as `slug@sha256`; as many at most. */
  loads?: Array<string>;
  /** The producer of the cell that bound or changed it last, such as `notebooks/analysis.py`. */
  producer: string;
  /** Whether it, or a variable that it is made from, was bound or changed afterwards by a cell that has no producer or did not complete. */
  rebound_by_scratch: boolean;
}

/** A volume. */
export interface Volume {
  /** Size of all files. */
  bytes: number;
  /** In seconds since 1970. */
  created_at: number;
  /** Number of files. */
  files: number;
  /** ID of the volume. */
  id: string;
  /** The last session that wrote the volume; absent if there was none. */
  last_writer?: VolumeWriterAnswer | null;
  /** Its name, unique for its owner. */
  name: string;
  /** `volume`. */
  object: string;
  /** Number of the last revision; 0 if nothing was saved yet. */
  revision: number;
  /** Time at which the last revision was saved, in seconds since 1970; absent if nothing was saved yet. */
  saved_at?: number | null;
}

/** Access of a session to its volume. */
export type VolumeAccess = "write" | "read";

/** An object of the API. */
export interface VolumeList {
  data: Array<Volume>;
  object: "list";
}

/** The volume of a session. */
export interface VolumeOfSession {
  access: VolumeAccess;
  /** Its name. */
  name: string;
  /** The revision that the session started with. */
  revision: number;
}

/** A session that writes or wrote a volume. */
export interface VolumeWriterAnswer {
  /** ID of the session. */
  session: string;
  /** State of its changes: `writing` (the session holds the volume), `saved` (it ended and all were saved), `incomplete` (it ended and the last ones could not be saved), `lost` (its server ended; changes after the last revision are lost). */
  state: string;
}

/** Maximum wait for the end. */
export interface WaitRequest {
  /** Seconds to wait, at most 60. */
  timeout?: number;
}

/** Operations of a server, by their names in the API's description. */
export const operations = {
  execute: json<ExecuteAnswer>("POST", "/execute"),
  read_artifact: download("GET", "/v1/artifacts/{sha256}"),
  read_rows: download("GET", "/v1/artifacts/{sha256}/rows"),
  list_connectors: json<ConnectorList>("GET", "/v1/connectors"),
  call_connector: json<ConnectorAnswer>("POST", "/v1/connectors/{connector}/{function}"),
  list_decisions: json<DecisionList>("GET", "/v1/decisions"),
  get_own_key: json<OwnKey>("GET", "/v1/key"),
  list_keys: json<KeyList>("GET", "/v1/keys"),
  create_key: json<NewKey>("POST", "/v1/keys"),
  revoke_key: json<Key>("DELETE", "/v1/keys/{id}"),
  list_project_datasets: json<PublishedDatasetList>("GET", "/v1/projects/{project}/datasets"),
  remove_project_dataset: json<PublishedDataset>("DELETE", "/v1/projects/{project}/datasets/{slug}"),
  read_project_dataset: json<PublishedDataset>("GET", "/v1/projects/{project}/datasets/{slug}"),
  read_project_dataset_content: download("GET", "/v1/projects/{project}/datasets/{slug}/content"),
  list_project_dataset_versions: json<DatasetVersionList>("GET", "/v1/projects/{project}/datasets/{slug}/versions"),
  list_runs: json<RunList>("GET", "/v1/runs"),
  get_run: json<Run>("GET", "/v1/runs/{id}"),
  export_run: json<RunExport>("GET", "/v1/runs/{id}/export"),
  replay_run: json<Replay>("POST", "/v1/runs/{id}/replay"),
  get_server: json<Server>("GET", "/v1/server"),
  list_backends: json<BackendList>("GET", "/v1/server/backends"),
  list_sessions: json<SessionList>("GET", "/v1/sessions"),
  create_session: json<Session>("POST", "/v1/sessions"),
  delete_session: json<Deleted>("DELETE", "/v1/sessions/{id}"),
  get_session: json<Session>("GET", "/v1/sessions/{id}"),
  list_aliases: json<AliasList>("GET", "/v1/sessions/{id}/aliases"),
  record_alias: json<Alias>("POST", "/v1/sessions/{id}/aliases"),
  list_cells: json<CellList>("GET", "/v1/sessions/{id}/cells"),
  run_cell: json<Cell>("POST", "/v1/sessions/{id}/cells"),
  get_cell: json<Cell>("GET", "/v1/sessions/{id}/cells/{cell}"),
  list_checkpoints: json<CheckpointList>("GET", "/v1/sessions/{id}/checkpoints"),
  create_checkpoint: json<NewCheckpoint>("POST", "/v1/sessions/{id}/checkpoints"),
  delete_checkpoint: json<Deleted>("DELETE", "/v1/sessions/{id}/checkpoints/{checkpoint}"),
  list_datasets: json<MountedList>("GET", "/v1/sessions/{id}/datasets"),
  add_dataset: json<Mounted>("POST", "/v1/sessions/{id}/datasets"),
  list_session_events: json<SessionEventList>("GET", "/v1/sessions/{id}/events"),
  list_files: json<FileList>("GET", "/v1/sessions/{id}/files"),
  delete_file: json<Deleted>("DELETE", "/v1/sessions/{id}/files/{path}"),
  read_file: download("GET", "/v1/sessions/{id}/files/{path}"),
  write_file: json<FileWritten>("PUT", "/v1/sessions/{id}/files/{path}"),
  fork_session: json<Forked>("POST", "/v1/sessions/{id}/fork"),
  hibernate_session: json<Hibernated>("POST", "/v1/sessions/{id}/hibernate"),
  bind_input: json<InputBound>("PUT", "/v1/sessions/{id}/inputs/{name}"),
  interrupt_session: json<Interrupted>("POST", "/v1/sessions/{id}/interrupt"),
  list_ports: json<PortList>("GET", "/v1/sessions/{id}/ports"),
  create_port_link: json<PortLink>("POST", "/v1/sessions/{id}/ports/{port}/links"),
  list_processes: json<ProcessList>("GET", "/v1/sessions/{id}/processes"),
  start_process: json<Process>("POST", "/v1/sessions/{id}/processes"),
  send_process_input: json<Process>("POST", "/v1/sessions/{id}/processes/{process}/input"),
  read_process_output: json<ProcessOutput>("GET", "/v1/sessions/{id}/processes/{process}/output"),
  signal_process: json<Process>("POST", "/v1/sessions/{id}/processes/{process}/signal"),
  open_process_terminal: download("GET", "/v1/sessions/{id}/processes/{process}/terminal"),
  wait_process: json<Process>("POST", "/v1/sessions/{id}/processes/{process}/wait"),
  reset_session: json<Session>("POST", "/v1/sessions/{id}/reset"),
  roll_back_session: json<RolledBack>("POST", "/v1/sessions/{id}/rollback"),
  resume_cell: download("GET", "/v1/sessions/{id}/streams/{stream}"),
  list_tools: json<ToolList>("GET", "/v1/sessions/{id}/tools"),
  call_tool: json<Record<string, any>>("POST", "/v1/sessions/{id}/tools/{name}"),
  try_cell: json<Try>("POST", "/v1/sessions/{id}/try"),
  discard_try: json<DecidedTry>("POST", "/v1/sessions/{id}/try/discard"),
  keep_try: json<DecidedTry>("POST", "/v1/sessions/{id}/try/keep"),
  get_session_usage: json<SessionUsage>("GET", "/v1/sessions/{id}/usage"),
  list_variables: json<VariableList>("GET", "/v1/sessions/{id}/variables"),
  get_variable: json<SessionVariable>("GET", "/v1/sessions/{id}/variables/{name}"),
  get_variable_origin: json<VariableOrigin>("GET", "/v1/sessions/{id}/variables/{name}/origin"),
  list_skills: json<any>("GET", "/v1/skills"),
  create_skill: json<any>("POST", "/v1/skills"),
  delete_skill: json<any>("DELETE", "/v1/skills/{skill}"),
  get_skill: json<any>("GET", "/v1/skills/{skill}"),
  update_skill: json<any>("POST", "/v1/skills/{skill}"),
  read_skill: download("GET", "/v1/skills/{skill}/content"),
  list_skill_versions: json<any>("GET", "/v1/skills/{skill}/versions"),
  add_skill_version: json<any>("POST", "/v1/skills/{skill}/versions"),
  delete_skill_version: json<any>("DELETE", "/v1/skills/{skill}/versions/{version}"),
  get_skill_version: json<any>("GET", "/v1/skills/{skill}/versions/{version}"),
  read_skill_version: download("GET", "/v1/skills/{skill}/versions/{version}/content"),
  list_volumes: json<VolumeList>("GET", "/v1/volumes"),
  delete_volume: json<Deleted>("DELETE", "/v1/volumes/{name}"),
  get_volume: json<Volume>("GET", "/v1/volumes/{name}"),
};
