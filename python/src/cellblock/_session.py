"""A session: a sandbox whose variables live until it ends."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import _local, types
from . import _operations as api
from ._branches import Branches, cell
from ._contents import Contents
from ._errors import CellblockError, ServerError
from ._handle import given
from ._http import Server
from ._process import Programs
from ._results import Result
from ._shell import Shell

if TYPE_CHECKING:
    from ._client import Client


class Session(Branches, Contents, Programs):
    """A sandbox whose variables live until it ends.

    Without `url`, Cellblock runs on this machine: the program is started with the first session of this process and ended with the last.
    With `url` (and `key`, if the server wants one), the sandbox is on that server.

    `image` names the image to start from (only without `url`). `id` names a session of the server that this one continues, instead of
    starting another. The other arguments are the fields of `POST /v1/sessions`:

    - `idle_timeout`: seconds without a request after which the session ends, or hibernates with `on_idle="hibernate"`
    - `limits`: the sandbox's limits, such as `{"memory_bytes": 512 << 20}`
    - `network`: the network that code can use, `none`, `loopback` or `egress`; `network_policy` lists hosts of the last
    - `toolset`: `interpreter`, `notebook`, `workbench` or `derivation`
    - `requirements`: packages for all cells and commands; `setup`: code that prepares each kernel; `prelude`: names that are bound
    - `volume`: files that outlive the session, in `/workspace/volume`; `volume_access` is `write` or `read`
    - `skills`: references to skills, found in `/skills`; `connectors`: those that code can call
    - `project`: whose datasets code can publish and load; `seen`: slugs of those that it may load at once
    - `guard`: `off`, `standard` or `strict`; `rescue`: `off`, `idle` or `on`; `minimum_backend`: the weakest wall
    - `inputs`: variables to bind before the first cell, each an object as for `PUT …/inputs/{name}`
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        image: str | None = None,
        idle_timeout: float | None = None,
        limits: Mapping[str, Any] | None = None,
        network: str | None = None,
        id: str | None = None,
        network_policy: Mapping[str, Any] | None = None,
        toolset: types.ToolsetName | None = None,
        requirements: Sequence[str] | None = None,
        setup: str | None = None,
        prelude: Sequence[str] | None = None,
        guard: types.Guard | None = None,
        rescue: types.Rescue | None = None,
        on_idle: str | None = None,
        volume: str | None = None,
        volume_access: types.VolumeAccess | None = None,
        skills: Sequence[Mapping[str, Any]] | None = None,
        connectors: Sequence[str] | None = None,
        project: str | None = None,
        seen: Sequence[str] | None = None,
        minimum_backend: types.BackendKind | None = None,
        inputs: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        request = given(
            idle_timeout=idle_timeout,
            limits=limits,
            network=network,
            network_policy=network_policy,
            toolset=toolset,
            requirements=requirements,
            setup=setup,
            prelude=prelude,
            guard=guard,
            rescue=rescue,
            on_idle=on_idle,
            volume=volume,
            volume_access=volume_access,
            skills=skills,
            connectors=connectors,
            project=project,
            seen=seen,
            minimum_backend=minimum_backend,
            inputs=inputs,
        )
        if id is not None and (url is None or request):
            raise CellblockError("`id` needs `url` and cannot be combined with settings of a new session")
        if url is not None and image is not None:
            raise CellblockError("`image` cannot be combined with `url`: the server has its own image")
        self._image = image
        self._is_local = url is None
        self._server = _local.acquire(image) if url is None else Server(url, key)
        self.id = ""
        try:
            made = self._server.call(api.CREATE_SESSION, request) if id is None else self._server.call(api.GET_SESSION, id=id)
            self.id = made["id"]
        except BaseException:
            self._release()
            raise
        self._shell = Shell(self._server, self.id, is_continued=id is not None)

    def _twin(self, id: str) -> Session:
        twin = object.__new__(Session)
        twin._image, twin._is_local, twin.id = self._image, self._is_local, id
        twin._server = _local.acquire(self._image) if self._is_local else self._server
        twin._shell = Shell(twin._server, id)
        return twin

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Session({self.id!r} at {self._server.url!r})"

    @property
    def shell(self) -> Shell:
        """Runs commands in the sandbox, and reads and writes any of its files."""
        self._open_id()
        return self._shell

    @property
    def client(self) -> Client:
        """The session's server: its volumes, runs, artifacts, skills and other objects of your key."""
        from ._client import Client

        return Client(self._server.url, key=self._server.key)

    @property
    def alive(self) -> bool:
        """Whether the session has not ended, by itself or because it was closed."""
        if not self.id:
            return False
        try:
            self.describe()
        except ServerError as error:
            if error.status == 404:
                return False
            raise
        return True

    def describe(self) -> types.Session:
        """Returns the session's settings, limits and status."""
        return self._call(api.GET_SESSION)

    def run(
        self,
        code: str,
        *,
        timeout: float | None = None,
        requirements: Sequence[str] = (),
        on_output: Callable[[str, str], None] | None = None,
        language: str | None = None,
        dry_run: bool = False,
        producer: str | None = None,
    ) -> Result:
        """Runs a cell and returns what it did. Code that fails is a result too: see `Result.check`.

        `timeout` is in seconds, `requirements` are packages to install first. `on_output` is called with `stdout` or `stderr` and each
        piece of text as it is written. `language` is `python`, `bash`, `javascript` or `r`; the session keeps the state of each. `dry_run`
        checks the code without running it. `producer` is named by the origins of the variables that the cell makes.
        """
        request = cell(code, timeout, requirements, language, producer) | ({"dry_run": True} if dry_run else {})
        if on_output is None:
            return Result.read(self._call(api.RUN_CELL, request), self._server)
        for event in self._events("POST", api.RUN_CELL.at(id=self._open_id()), request):
            match event["type"]:
                case "cell.stdout" | "cell.stderr" as name:
                    on_output(name.removeprefix("cell."), event["text"])
                case "cell.done":
                    return Result.read(event["cell"], self._server)
        raise _cut()

    def stream(
        self,
        code: str,
        *,
        timeout: float | None = None,
        requirements: Sequence[str] = (),
        language: str | None = None,
        producer: str | None = None,
        stream_id: str | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Runs a cell and yields its events, objects with a `type` and a `sequence_number`. The last one is `cell.done` with `cell`.

        The cell begins when the first event is read.
        A cell whose events are no longer read is interrupted. With a `stream_id`, a name that you make up for each cell, it runs on for 60
        seconds, and `resume` yields the rest. `result` makes a `Result` of the last event's `cell`.
        """
        request = cell(code, timeout, requirements, language, producer) | given(stream_id=stream_id)
        yield from self._events("POST", api.RUN_CELL.at(id=self._open_id()), request)

    def resume(self, stream_id: str, *, starting_after: int | None = None) -> Iterator[dict[str, Any]]:
        """Yields the events of a cell with a `stream_id`, after the one with the number `starting_after`."""
        path = api.RESUME_CELL.at(id=self._open_id(), stream=stream_id)
        yield from self._events("GET", path, None, given(starting_after=starting_after))

    def _events(self, method: str, path: str, request: object, query: Mapping[str, object] | None = None) -> Iterator[dict[str, Any]]:
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        body = None if request is None else json.dumps(request).encode()
        with self._server.open(method, path, body, query=query, headers=headers) as response:
            for event in _events(response):
                if event["type"] == "cell.error":
                    error = event["error"]
                    raise ServerError(502, error.get("code"), error["message"], None)
                yield event
                if event["type"] == "cell.done":
                    return
        raise _cut()

    def result(self, data: Mapping[str, Any]) -> Result:
        """Returns the API's object of a cell, such as `cell` of the event `cell.done`, as a result."""
        return Result.read(dict(data), self._server)

    def cells(self) -> list[Result]:
        """Returns the last 50 cells, within 8 MiB, the oldest first. `Result.data` has their `cell` numbers and `code`."""
        return [Result.read(it, self._server) for it in self._call(api.LIST_CELLS)]

    def cell(self, number: int) -> Result:
        """Returns a cell by its number."""
        return Result.read(self._call(api.GET_CELL, cell=number), self._server)

    def interrupt(self) -> None:
        """Interrupts the cell that runs now, from another thread. Its variables are kept."""
        self._call(api.INTERRUPT_SESSION, {})

    def reset(self) -> None:
        """Starts over with an empty sandbox."""
        self._call(api.RESET_SESSION, {})

    def close(self) -> None:
        """Ends the session and its sandbox. Closing it again does nothing."""
        if not self.id:
            return
        id, self.id = self.id, ""
        try:
            self._server.call(api.DELETE_SESSION, id=id)
        except ServerError as error:
            # It may have ended by itself.
            if error.status != 404:
                raise
        finally:
            self._release()

    def _release(self) -> None:
        if self._is_local:
            self._is_local = False
            _local.release(self._image)


def _events(response: io.BufferedIOBase) -> Iterator[dict[str, Any]]:
    for line in response:
        if not line.startswith(b"data: "):
            continue
        # A connection that was cut ends in the middle of a line.
        if not line.endswith(b"\n"):
            raise _cut()
        yield json.loads(line[6:])


def _cut() -> CellblockError:
    return CellblockError("the server's stream ended before the cell did; check the server and proxies in front of it")
