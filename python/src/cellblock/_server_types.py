"""Objects of the API of servers, as the client returns them. Made by `python/generate.py` from `docs/reference/openapi.json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired

    from .types import ArtifactId, Guard, InputFormat, Rescue

BackendKind = Literal["process", "gvisor", "microvm"]
CellMode = Literal["exec", "eval"]
DataframeLibrary = Literal["pandas", "polars", "pyarrow"]
FetchEffect = Literal["reads", "writes"]
Kind = Literal["dataframe", "figure", "image", "rich", "file", "chart", "dataset", "result"]
Language = Literal["python", "bash", "javascript", "r"]
ReplayResult = Literal["equal", "differs", "impossible"]
RunDependency = Literal["files", "commands", "processes", "datasets", "project", "volume", "egress", "tool_results"]
State = Literal["kept", "rescued", "lost"]


class ArtifactRef(TypedDict):
    """Stored bytes."""

    bytes: int
    kind: Kind
    media_type: str
    sha256: ArtifactId


class Backend(TypedDict):
    """A backend."""

    detail: str
    in_use: bool
    name: BackendKind
    works: bool


class BuildAnswer(TypedDict):
    """A build that runs."""

    began: int
    done: NotRequired[int | None]
    stage: str
    total: NotRequired[int | None]
    what: str


class Card(TypedDict):
    """A function of a connector."""

    description: NotRequired[str]
    effect: FetchEffect
    function: str
    name: str
    parameters: Any
    returns: NotRequired[Any]


class Column2(TypedDict):
    """A column of a table."""

    dtype: str
    name: str


class Connector(TypedDict):
    """A connector: functions of the host under one name."""

    description: NotRequired[str]
    functions: list[Card]
    name: str
    unavailable: NotRequired[str | None]


class ConnectorAnswer(TypedDict):
    """Result of a function."""

    arguments: dict[str, Any]
    artifact: NotRequired[ArtifactRef | None]
    bytes: NotRequired[int | None]
    cached: bool
    columns: NotRequired[list[str]]
    connector: str
    duration_ms: float
    error: NotRequired[str | None]
    fetched_at: NotRequired[str | None]
    function: str
    head: NotRequired[list[Any]]
    note: NotRequired[str | None]
    outcome: str
    retry_after: NotRequired[float | None]
    row_count: NotRequired[int | None]
    tail: NotRequired[list[Any]]
    truncated: bool
    value: NotRequired[Any]


class DatasetVersion(TypedDict):
    """A version of a dataset."""

    bytes: int
    columns: list[Column2]
    data_sha256: str
    fetches: NotRequired[list[str]]
    index: list[str]
    library: DataframeLibrary
    loads: NotRequired[list[str]]
    logical_id: ArtifactId
    producer: NotRequired[str | None]
    published_unix_ms: int
    rebound_by_scratch: bool
    rows: int
    session: str
    sha256: ArtifactId
    variable: NotRequired[str | None]


class Decision(TypedDict):
    """A decision, and how often it was made."""

    decision: NotRequired[str]
    host: NotRequired[str]
    kind: Literal["egress", "quota"]
    method: NotRequired[str]
    port: NotRequired[int]
    reason: NotRequired[str]
    limit: NotRequired[int]
    quota: NotRequired[str]
    at: int
    bytes_down: int
    bytes_up: int
    count: int
    session: NotRequired[str | None]


class ExecuteAnswer(TypedDict):
    """Result of a program."""

    execution_time_ms: int
    exit_code: int
    files_produced: NotRequired[dict[str, str]]
    files_skipped: NotRequired[list[dict[str, Any]]]
    status: str
    stderr: str
    stdout: str


class ExportedInput(TypedDict):
    """An input of a run."""

    data: NotRequired[str | None]
    format: InputFormat
    name: str
    omitted: NotRequired[str | None]
    sha256: NotRequired[str | None]


class ImageAnswer(TypedDict):
    """An image."""

    bytes: int
    created_at: int
    id: str
    in_use: bool
    name: str
    notes: list[str]
    packages: int
    python: str


class Key(TypedDict):
    """A key, without its secret."""

    admin: bool
    connectors: list[str]
    created_at: int
    expires_at: NotRequired[int | None]
    id: str
    last_used_at: NotRequired[int | None]
    max_network: NotRequired[str | None]
    minimum_backend: NotRequired[BackendKind | None]
    name: str
    object: str
    quotas: dict[str, Any]
    revoked_at: NotRequired[int | None]
    usable: bool


class NewKey(TypedDict):
    """A key that has just been made."""

    admin: bool
    connectors: list[str]
    created_at: int
    expires_at: NotRequired[int | None]
    id: str
    last_used_at: NotRequired[int | None]
    max_network: NotRequired[str | None]
    minimum_backend: NotRequired[BackendKind | None]
    name: str
    object: str
    quotas: dict[str, Any]
    revoked_at: NotRequired[int | None]
    secret: str
    usable: bool


class OwnKey(TypedDict):
    """The caller's own key."""

    admin: bool
    connectors: list[str]
    created_at: NotRequired[int | None]
    expires_at: NotRequired[int | None]
    id: str
    max_network: str
    minimum_backend: NotRequired[str | None]
    name: NotRequired[str | None]
    object: str
    quotas: list[QuotaStanding]


class PoolAnswer(TypedDict):
    """Sandboxes of the server."""

    failed_modules: list[str]
    in_use: int
    ready: int
    taken: int


class ProducedFile(TypedDict):
    """A file that a cell created or changed."""

    bytes: int
    name: str
    path: str
    sha256: str


class PublishedDataset(TypedDict):
    """A published dataset and its current version."""

    created_unix_ms: int
    current: DatasetVersion
    description: str
    notes: list[str]
    slug: str
    tags: list[str]
    title: str
    versions: int


class QuotaStanding(TypedDict):
    """A quota of an owner."""

    limit: NotRequired[int | None]
    quota: str
    used: NotRequired[int | None]


class RecordedOutput(TypedDict):
    """A displayed output."""

    artifacts: NotRequired[list[ArtifactRef]]
    name: NotRequired[str | None]
    sha256: str
    type: str


class Replay(TypedDict):
    """Result of a replay."""

    differences: NotRequired[list[RunDifference]]
    object: str
    reasons: NotRequired[list[str]]
    result: ReplayResult
    run: str
    runs: list[ReplayedRun]


class ReplayedRun(TypedDict):
    """A run that was replayed."""

    differences: NotRequired[list[RunDifference]]
    replay: str
    result: ReplayResult
    run: str


class Run(TypedDict):
    """A run: `object` is `run`, `created_at` is its start in seconds since 1970, and the rest is its record."""

    after_reset: NotRequired[bool]
    backend: str
    call: RunCall
    cell: int
    code: NotRequired[str | None]
    code_sha256: str
    created_at: int
    depends_on: NotRequired[list[RunDependency]]
    durations: RunDurations
    error: NotRequired[RunError | None]
    fetches: NotRequired[list[RunFetch]]
    files: list[ProducedFile]
    id: str
    image: RunImage
    inputs: list[RunInput]
    layers: NotRequired[list[str]]
    limits: dict[str, Any]
    network: str
    object: str
    outcome: str
    outputs: list[RecordedOutput]
    parent: NotRequired[str | None]
    parent_checkpoint: NotRequired[str | None]
    protections: dict[str, Any]
    replay_of: NotRequired[str | None]
    session: str
    setup: RunSetup
    started_ms: int
    state: State
    stderr: RunStream
    stdout: RunStream
    tried: NotRequired[bool]
    wall: NotRequired[str | None]


class RunCall(TypedDict):
    """Options of a cell."""

    argv: NotRequired[list[str]]
    collect_files: bool
    echo: bool
    language: Language
    last: bool
    line: int
    mode: CellMode
    name: str
    requirements: NotRequired[list[str]]
    store: bool
    timeout_ms: int


class RunDifference(TypedDict):
    """Something that two runs made differently."""

    recorded: NotRequired[str | None]
    replayed: NotRequired[str | None]
    what: str


class RunDurations(TypedDict):
    """Durations in milliseconds."""

    finish_ms: float
    prepare_ms: float
    run_ms: float


class RunError(TypedDict):
    """Reason that a run did not complete."""

    message: str
    type: str


class RunExport(TypedDict):
    """A run with the runs before it in its sandbox, their code and their inputs."""

    gap: NotRequired[str | None]
    inputs: list[ExportedInput]
    object: str
    runs: list[RunRecord]


class RunFetch(TypedDict):
    """A call of a connector."""

    arguments_sha256: str
    cached: bool
    connector: str
    function: str
    outcome: str
    sha256: NotRequired[str | None]


class RunImage(TypedDict):
    """An image."""

    digest: str
    name: str
    python: str


class RunInput(TypedDict):
    """An input."""

    bytes: int
    format: InputFormat
    name: str
    sha256: NotRequired[str | None]


class RunRecord(TypedDict):
    """One execution of a cell."""

    after_reset: NotRequired[bool]
    backend: str
    call: RunCall
    cell: int
    code: NotRequired[str | None]
    code_sha256: str
    depends_on: NotRequired[list[RunDependency]]
    durations: RunDurations
    error: NotRequired[RunError | None]
    fetches: NotRequired[list[RunFetch]]
    files: list[ProducedFile]
    id: str
    image: RunImage
    inputs: list[RunInput]
    layers: NotRequired[list[str]]
    limits: dict[str, Any]
    network: str
    outcome: str
    outputs: list[RecordedOutput]
    parent: NotRequired[str | None]
    parent_checkpoint: NotRequired[str | None]
    protections: dict[str, Any]
    replay_of: NotRequired[str | None]
    session: str
    setup: RunSetup
    started_ms: int
    state: State
    stderr: RunStream
    stdout: RunStream
    tried: NotRequired[bool]
    wall: NotRequired[str | None]


class RunSetup(TypedDict):
    """Setup of a session."""

    guard: Guard
    prelude: list[str]
    rescue: Rescue
    skills: NotRequired[list[RunSkill]]
    snippets: NotRequired[list[RunSnippet]]


class RunSkill(TypedDict):
    """A skill of a session."""

    id: NotRequired[str | None]
    name: str
    sha256: ArtifactId
    version: str


class RunSnippet(TypedDict):
    """Code that prepared a session."""

    code: NotRequired[str | None]
    name: str
    sha256: str


class RunStream(TypedDict):
    """Text that was written to a stream."""

    bytes: int
    sha256: str
    truncated: bool


class Server(TypedDict):
    """The server."""

    builds: list[BuildAnswer]
    images: list[ImageAnswer]
    object: str
    pool: NotRequired[PoolAnswer | None]
    version: str


class Volume(TypedDict):
    """A volume."""

    bytes: int
    created_at: int
    files: int
    id: str
    last_writer: NotRequired[VolumeWriterAnswer | None]
    name: str
    object: str
    revision: int
    saved_at: NotRequired[int | None]


class VolumeWriterAnswer(TypedDict):
    """A session that writes or wrote a volume."""

    session: str
    state: str
