"""Objects of the API, as the client returns them. Made by `python/generate.py` from `docs/reference/openapi.json`."""

# ruff: noqa: I001

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from ._server_types import (
    ArtifactRef as ArtifactRef,
    Backend as Backend,
    BackendKind as BackendKind,
    BuildAnswer as BuildAnswer,
    Card as Card,
    CellMode as CellMode,
    Column2 as Column2,
    Connector as Connector,
    ConnectorAnswer as ConnectorAnswer,
    DataframeLibrary as DataframeLibrary,
    DatasetVersion as DatasetVersion,
    Decision as Decision,
    ExecuteAnswer as ExecuteAnswer,
    ExportedInput as ExportedInput,
    FetchEffect as FetchEffect,
    ImageAnswer as ImageAnswer,
    Key as Key,
    Kind as Kind,
    Language as Language,
    NewKey as NewKey,
    OwnKey as OwnKey,
    PoolAnswer as PoolAnswer,
    ProducedFile as ProducedFile,
    PublishedDataset as PublishedDataset,
    QuotaStanding as QuotaStanding,
    RecordedOutput as RecordedOutput,
    Replay as Replay,
    ReplayResult as ReplayResult,
    ReplayedRun as ReplayedRun,
    Run as Run,
    RunCall as RunCall,
    RunDependency as RunDependency,
    RunDifference as RunDifference,
    RunDurations as RunDurations,
    RunError as RunError,
    RunExport as RunExport,
    RunFetch as RunFetch,
    RunImage as RunImage,
    RunInput as RunInput,
    RunRecord as RunRecord,
    RunSetup as RunSetup,
    RunSkill as RunSkill,
    RunSnippet as RunSnippet,
    RunStream as RunStream,
    Server as Server,
    State as State,
    Volume as Volume,
    VolumeWriterAnswer as VolumeWriterAnswer,
)

if TYPE_CHECKING:
    from typing_extensions import NotRequired

ArtifactId: TypeAlias = "str"
ChangeKind = Literal["created", "changed", "removed"]
Guard = Literal["off", "standard", "strict"]
How = Literal["mounted", "cloned", "copied", "streamed"]
InputFormat = Literal["csv", "tsv", "parquet", "json", "ndjson", "arrow", "xlsx", "bytes", "value"]
OutputPage: TypeAlias = "TablePage | TextPage"
ProcessState = Literal["running", "exited", "killed", "lost"]
Rescue = Literal["off", "idle", "on"]
SessionAnswer: TypeAlias = "Session"
SessionStatus = Literal["idle", "busy", "hibernated"]
ToolsetName = Literal["interpreter", "workbench", "derivation", "notebook"]
VolumeAccess = Literal["write", "read"]


class Alias(TypedDict):
    """A recorded tool result."""

    alias: str
    bytes: int
    format: InputFormat
    object: str
    rows: int | None
    sha256: ArtifactId
    tool: str


class ChangedVariable(TypedDict):
    """A variable that differs from the state before a try."""

    change: ChangeKind
    name: str


class Checkpoint(TypedDict):
    """A checkpoint."""

    bytes: int
    cell: int
    created_unix_ms: int
    files: int
    id: str
    name: NotRequired[str | None]
    parent: NotRequired[str | None]


class ColumnType(TypedDict):
    """A column of a table."""

    dtype: str
    name: str


class DecidedTry(TypedDict):
    """The result of a decision about a try."""

    cell: int
    kept: bool


class Deleted(TypedDict):
    """A deleted object."""

    deleted: bool
    id: str
    object: str


class FileDifference(TypedDict):
    """A file, link or directory that differs from a snapshot."""

    change: ChangeKind
    path: str


class FileWritten(TypedDict):
    """A file that was written."""

    bytes: int
    object: str
    path: str


class Forked(TypedDict):
    """The sessions of a fork."""

    ids: list[str]
    object: str
    parent: str
    sessions: list[SessionAnswer]


class Hibernated(TypedDict):
    """Parts that a hibernated session has lost, and those that are kept."""

    kept_bytes: NotRequired[int | None]
    lost_checkpoints: int
    lost_variables: bool


class InputAnswer(TypedDict):
    """An input that is bound."""

    bytes: int
    format: InputFormat


class InputBound(TypedDict):
    """An input that was bound."""

    bytes: int
    detected: list[str]
    format: InputFormat
    name: str
    object: str


class Interrupted(TypedDict):
    """Result of an interrupt."""

    interrupted: bool
    object: str


class ListedFile(TypedDict):
    """A regular file of a sandbox."""

    bytes: int
    modified_unix_ms: int
    path: str


class MissingServer(TypedDict):
    """A server that may have some of what is listed, and did not answer."""

    code: str
    id: str
    message: str


class Mounted(TypedDict):
    """A dataset of a session."""

    bytes: int
    how: How
    name: str
    path: str
    reason: NotRequired[str | None]
    requested: str
    shape: Shape


class NewCheckpoint(TypedDict):
    """A checkpoint that was just made."""

    bytes: int
    cell: int
    created_unix_ms: int
    evicted: NotRequired[Checkpoint | None]
    files: int
    id: str
    name: NotRequired[str | None]
    parent: NotRequired[str | None]


class Port(TypedDict):
    """A port on which a program listens."""

    path: str
    port: int


class PortLink(TypedDict):
    """A link to a port, which works without a key."""

    expires_at: int
    host: NotRequired[str | None]
    path: str


class Process(TypedDict):
    """A process of a session."""

    command: list[str]
    ended_unix_ms: int | None
    exit_code: int | None
    id: str
    object: str
    output_file: str
    session: str
    signal: str | None
    started_unix_ms: int
    state: ProcessState
    stdin: bool
    terminal: bool


class ProcessOutput(TypedDict):
    """Part of the output of a process."""

    eof: bool
    lost: int
    next_offset: int
    object: str
    offset: int
    text: str
    total: int


class RolledBack(TypedDict):
    """The result of a rollback."""

    cell: int
    checkpoint: Checkpoint


class Session(TypedDict):
    """A session."""

    cells: int
    connectors: list[str]
    created_at: int
    datasets: int
    expires_at: int
    guard: Guard
    id: str
    idle_timeout: float
    inputs: dict[str, InputAnswer]
    last_used_at: int
    limits: dict[str, Any]
    network: str
    object: str
    on_idle: str
    prelude: list[str]
    project: NotRequired[str | None]
    rescue: Rescue
    skills: NotRequired[list[SessionSkill]]
    status: SessionStatus
    toolset: ToolsetName
    undecided_try: NotRequired[int | None]
    volume: NotRequired[VolumeOfSession | None]


class SessionEvent(TypedDict):
    """Something that happened to a session."""

    checkpoint: NotRequired[str]
    event: Literal[
        "checkpoint",
        "checkpoint_dropped",
        "rolled_back",
        "tried",
        "try_kept",
        "try_discarded",
        "forked",
        "forked_from",
        "hibernated",
        "resumed",
        "rescued",
        "kernel_lost",
        "reset",
    ]
    name: NotRequired[str | None]
    sessions: NotRequired[list[str]]
    session: NotRequired[str]
    at_unix_ms: int
    cell: int


class SessionSkill(TypedDict):
    """A skill of a session."""

    description: str
    id: NotRequired[str | None]
    name: str
    path: str
    version: str


class SessionUsage(TypedDict):
    """Resources that a session's sandbox uses."""

    cpu_ms: NotRequired[int | None]
    memory_bytes: NotRequired[int | None]
    memory_peak_bytes: NotRequired[int | None]
    object: str
    processes: NotRequired[int | None]
    sandbox: bool


class SessionVariable(TypedDict):
    """A variable with its value."""

    name: str
    object: str
    origin: NotRequired[VariableOrigin | None]
    output: dict[str, Any]
    page: NotRequired[OutputPage | None]
    text: NotRequired[str | None]


class Shape(TypedDict):
    """The size of a table."""

    about: bool
    columns: list[ColumnType]
    rows: NotRequired[int | None]
    separator: NotRequired[str | None]


class SkippedFile(TypedDict):
    """A file that was not collected."""

    path: str
    reason: str


class TablePage(TypedDict):
    """A page of a table."""

    first_row: int
    page: int
    pages: int
    rows: list[list[bool | float | str | list[Any] | dict[str, Any] | None]]


class TextPage(TypedDict):
    """A page of a text."""

    chars: int
    first_char: int
    page: int
    pages: int
    text: str


class Tool(TypedDict):
    """A tool, for listing to a model."""

    description: str
    name: str
    parameters: Any


class TryChanges(TypedDict):
    """Changes of a try."""

    files: list[FileDifference]
    files_omitted: NotRequired[int]
    variables: list[ChangedVariable]


class Variable(TypedDict):
    """A variable."""

    name: str
    summary: str
    type: str


class VariableOrigin(TypedDict):
    """Origin of a variable's value."""

    artifacts: NotRequired[list[ArtifactId]]
    cell: int
    fetches: list[str]
    loads: NotRequired[list[str]]
    producer: str
    rebound_by_scratch: bool


class VolumeOfSession(TypedDict):
    """The volume of a session."""

    access: VolumeAccess
    name: str
    revision: int
