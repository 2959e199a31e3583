/** What the API answers, as far as the console reads it. */

export interface Listed<T> {
  data: T[];
  last_id?: string | null;
  has_more?: boolean;
}

export interface Image {
  name: string;
  digest: string;
  python: string;
}

export interface ConsoleState {
  version: string;
  sign_in_required: boolean;
  account?: { owner: string; name?: string; expires_at?: number };
  server?: {
    toolsets: string[];
    max_network: string;
    max_cell_timeout: number;
    sandboxes?: { backend: string; python: string; image: Image; failed_modules: string[]; protections: Record<string, Protection>; limits: Record<string, number | null> };
  };
}

export interface Session {
  id: string;
  toolset: string;
  status: "idle" | "busy" | "hibernated";
  created_at: number;
  last_used_at: number;
  expires_at: number;
  idle_timeout: number;
  network: string;
  guard: string;
  rescue: string;
  prelude: string[];
  cells: number;
  /** The number of a cell that was tried and waits for a decision, as everything else does for it. */
  undecided_try?: number;
  project?: string;
  volume?: { name: string };
  connectors: string[];
  inputs: Record<string, { format: string; bytes: number }>;
  datasets: number;
  limits: Record<string, number | null>;
}

export interface ArtifactRef {
  sha256: string;
  bytes: number;
  media_type: string;
}

export interface Column {
  name: string;
  dtype: string;
}

export interface Dataframe {
  type: "dataframe";
  name: string | null;
  library: string;
  rows: number;
  rows_stored: number;
  complete: boolean;
  columns: Column[];
  head: unknown[][];
  tail: unknown[][];
  table: ArtifactRef | null;
  note?: string;
}

export interface Figure {
  type: "figure";
  name: string | null;
  library: string;
  title: string | null;
  image: ArtifactRef | null;
  spec: ArtifactRef | null;
  alt?: string;
  note?: string;
}

export interface Chart {
  type: "chart";
  title: string | null;
  alt: string | null;
  rows: number;
  document: ArtifactRef | null;
  image: ArtifactRef | null;
  note?: string;
}

export interface Picture {
  type: "image";
  name: string | null;
  width: number | null;
  height: number | null;
  image: ArtifactRef | null;
}

export interface Primitive {
  type: "primitive";
  name: string | null;
  value: string | number | boolean | null;
  python_type: string;
  truncated: boolean;
  note?: string;
}

export interface Rich {
  type: "rich";
  name: string | null;
  text: string;
  bundle: { mime: string; artifact: ArtifactRef }[];
  truncated: boolean;
}

export interface Result {
  type: "result";
  value: unknown;
  python_type: string;
}

export interface Exception {
  type: "exception";
  exception: string;
  message: string;
  traceback: string;
  line: number | null;
  notes: string[];
}

export type Output = Dataframe | Figure | Chart | Picture | Primitive | Rich | Result | Exception;

export interface ProducedFile {
  path: string;
  name: string;
  bytes: number;
  sha256: string;
}

export interface Protection {
  state: "active" | "degraded" | "disabled";
  reason?: string;
}

export interface Sandbox {
  backend: string;
  wall?: string;
  image: string;
  network?: string;
  protections: Record<string, Protection>;
}

export interface Cell {
  cell: number;
  code: string;
  outcome: string;
  state: string;
  outputs: Output[];
  outputs_dropped?: number;
  stdout: string;
  stderr: string;
  duration_ms: number;
  files: ProducedFile[];
  sandbox: Sandbox;
  note?: string;
  rejections?: Rejection[];
  fetches?: Fetch[];
  origins?: Record<string, Origin>;
  /** Whether the session's state does not come from it. */
  discarded?: boolean;
}

type Change = "created" | "changed" | "removed";

/** What a tried cell changed. */
export interface Changes {
  variables: { name: string; change: Change }[];
  files: { path: string; change: Change }[];
  files_omitted?: number;
}

export interface Tried extends Cell {
  changes: Changes;
  undecided: boolean;
}

export interface Forked {
  parent: string;
  ids: string[];
}

export interface Rejection {
  code: string;
  line: number | null;
  field?: string;
  valid?: string[];
  message: string;
}

/** A call of a connector. */
export interface Fetch {
  connector: string;
  function: string;
  arguments: Record<string, unknown>;
  outcome: string;
  error?: string;
  cached: boolean;
  fetched_at?: string;
  bytes?: number;
  row_count?: number;
  artifact?: ArtifactRef;
  duration_ms: number;
}

/** Where a variable comes from. */
export interface Origin {
  producer: string;
  cell: number;
  fetches: string[];
  loads?: string[];
  rebound_by_scratch: boolean;
}

export type CellEvent = { sequence_number: number } & (
  | { type: "cell.started" }
  | { type: "cell.stdout"; text: string }
  | { type: "cell.stderr"; text: string }
  | { type: "cell.output"; output: Output; display_id?: string }
  | { type: "cell.output_updated"; display_id: string; output: Output }
  | { type: "cell.cleared"; wait: boolean }
  | { type: "cell.file"; file: ProducedFile }
  | { type: "cell.error"; error: { message: string } }
  | { type: "cell.done"; cell: Cell }
);

export interface ListedFile {
  path: string;
  bytes: number;
  modified_unix_ms: number;
}

export interface Rows {
  columns: string[];
  total_rows: number;
  first_row: number;
  rows: unknown[][];
}

export interface Checkpoint {
  id: string;
  name?: string;
  parent?: string;
  cell: number;
  created_unix_ms: number;
  files: number;
  bytes: number;
}

export interface RunStream {
  sha256: string;
  bytes: number;
  truncated: boolean;
}

export interface RecordedOutput {
  type: string;
  name?: string;
  sha256: string;
  artifacts?: ArtifactRef[];
}

/** The record of a run. */
export interface RunRecord {
  id: string;
  created_at: number;
  session: string;
  cell: number;
  started_ms: number;
  code?: string;
  code_sha256: string;
  call: { name: string; language: string; timeout_ms: number; requirements?: string[] };
  setup: { prelude: string[]; guard: string; rescue: string };
  inputs: { name: string; format: string; sha256?: string; bytes: number }[];
  image: Image;
  layers?: string[];
  backend: string;
  wall?: string;
  protections: Record<string, Protection>;
  limits: Record<string, unknown>;
  network: string;
  parent?: string;
  parent_checkpoint?: string;
  after_reset?: boolean;
  depends_on?: string[];
  replay_of?: string;
  fetches?: { connector: string; function: string; outcome: string; cached: boolean; sha256?: string }[];
  outcome: string;
  state: string;
  error?: { type: string; message: string };
  outputs: RecordedOutput[];
  stdout: RunStream;
  stderr: RunStream;
  files: ProducedFile[];
  durations: { prepare_ms: number; run_ms: number; finish_ms: number };
}

export interface Difference {
  what: string;
  recorded?: string;
  replayed?: string;
}

export interface Replay {
  run: string;
  result: "equal" | "differs" | "impossible";
  reasons?: string[];
  differences?: Difference[];
  runs: { run: string; replay: string; result: string }[];
}
