"""A session: a sandbox whose variables live until it ends."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from . import _local
from ._errors import CellblockError, ServerError
from ._http import Server
from ._results import Result
from ._shell import Shell


class Session:
    """A sandbox whose variables live until it ends.

    Without `url`, Cellblock runs on this machine: the program is started with the first session of this process and ended with the last.
    With `url` (and `key`, if the server wants one), the sandbox is on that server.

    `image` names the image to start from (only without `url`), `idle_timeout` the seconds without a request after which the session ends,
    `limits` the sandbox's limits, and `network` the network that code can use, `none`, `loopback` or `egress`, as in `POST /v1/sessions`.

    `id` names a session of the server that this one continues, instead of starting another.
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
    ) -> None:
        if id is not None and (url is None or idle_timeout is not None or limits is not None or network is not None):
            raise CellblockError("`id` needs `url` and cannot be combined with settings of a new session")
        if url is not None and image is not None:
            raise CellblockError("`image` cannot be combined with `url`: the server has its own image")
        self._image = image
        self._is_local = url is None
        self._server = _local.acquire(image) if url is None else Server(url, key)
        self.id = ""
        request: dict[str, Any] = {}
        if idle_timeout is not None:
            request["idle_timeout"] = idle_timeout
        if limits is not None:
            request["limits"] = dict(limits)
        if network is not None:
            request["network"] = network
        try:
            if id is not None:
                self.id = str(self._server.json("GET", f"/v1/sessions/{id}")["id"])
            else:
                self.id = str(self._server.json("POST", "/v1/sessions", request)["id"])
        except BaseException:
            self._release()
            raise
        self._shell = Shell(self._server, self.id, is_continued=id is not None)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Session({self.id!r} at {self._server.url!r})"

    @property
    def shell(self) -> Shell:
        """Runs commands in the sandbox, and reads and writes any of its files."""
        self._path()
        return self._shell

    @property
    def alive(self) -> bool:
        """Whether the session has not ended, by itself or because it was closed."""
        if not self.id:
            return False
        try:
            self._server.json("GET", self._path())
        except ServerError as error:
            if error.status == 404:
                return False
            raise
        return True

    def run(
        self,
        code: str,
        *,
        timeout: float | None = None,
        requirements: Sequence[str] = (),
        on_output: Callable[[str, str], None] | None = None,
    ) -> Result:
        """Runs a cell and returns what it did. Code that fails is a result too: see `Result.check`.

        `timeout` is in seconds, `requirements` are packages to install first. `on_output` is called with `stdout` or `stderr` and each
        piece of text as it is written.
        """
        request: dict[str, Any] = {"code": code}
        if timeout is not None:
            request["timeout"] = timeout
        if requirements:
            request["requirements"] = list(requirements)
        if on_output is None:
            return Result.read(self._server.json("POST", self._path("cells"), request), self._server)
        return self._stream(request, on_output)

    def _stream(self, request: dict[str, Any], on_output: Callable[[str, str], None]) -> Result:
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        body = json.dumps(request).encode()
        with self._server.open("POST", self._path("cells"), body, headers=headers) as response:
            for event in _events(response):
                match event["type"]:
                    case "cell.stdout" | "cell.stderr" as name:
                        on_output(name.removeprefix("cell."), event["text"])
                    case "cell.done":
                        return Result.read(event["cell"], self._server)
                    case "cell.error":
                        error = event["error"]
                        raise ServerError(502, error.get("code"), error["message"], None)
        raise CellblockError("the server's stream ended before the cell did")

    def interrupt(self) -> None:
        """Interrupts the cell that runs now, from another thread. Its variables are kept."""
        self._server.json("POST", self._path("interrupt"), {})

    def reset(self) -> None:
        """Starts over with an empty sandbox."""
        self._server.json("POST", self._path("reset"), {})

    def variables(self) -> list[dict[str, Any]]:
        """Describes the session's variables."""
        return list(self._server.json("GET", self._path("variables"))["data"])

    def put(self, name: str, value: Any, *, format: str | None = None) -> list[str]:
        """Binds a value to a variable: a data frame of pandas, Polars or pyarrow, bytes, or anything that JSON can hold.

        `format` says how bytes are read: `csv`, `parquet`, `json`, `ndjson`, `arrow`, `xlsx` become a data frame or a value; without one,
        the variable holds the bytes. Returns what was detected of a file that is not plain, such as its separator, encoding or sheet.
        """
        path = self._path(f"inputs/{name}")
        frame = _parquet(value)
        if frame is not None:
            value, format = frame, "parquet"
        if isinstance(value, bytes | bytearray | memoryview):
            query = {"format": format or "bytes"}
            headers = {"Content-Type": "application/octet-stream"}
            with self._server.open("PUT", path, bytes(value), query=query, headers=headers) as response:
                return list(json.loads(response.read()).get("detected", []))
        if format is not None:
            raise CellblockError(f"`format` is for bytes, and `{name}` is {type(value).__name__}")
        if isinstance(value, float) and not math.isfinite(value):
            raise CellblockError(f"`{name}` is {value}, which JSON cannot hold")
        self._server.json("PUT", path, {"value": value})
        return []

    def write(self, path: str, content: bytes | str | Path) -> None:
        """Writes a file into the sandbox; relative paths are below `/workspace`.

        `content` is bytes, text, or the path of a file to copy.
        """
        if isinstance(content, Path):
            content = content.read_bytes()
        elif isinstance(content, str):
            content = content.encode()
        with self._server.open("PUT", self._path(f"files/{_inside(path)}"), content) as response:
            response.read()

    def read(self, path: str) -> bytes:
        """Reads a file of the sandbox. Relative paths are below `/workspace`."""
        return self._server.bytes(self._path(f"files/{_inside(path)}"))

    def files(self) -> list[dict[str, Any]]:
        """Lists the files below `/workspace` and `/tmp/output`."""
        return list(self._server.json("GET", self._path("files"))["data"])

    def close(self) -> None:
        """Ends the session and its sandbox. Closing it again does nothing."""
        if not self.id:
            return
        path, self.id = self._path(), ""
        try:
            self._server.json("DELETE", path)
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

    def _path(self, rest: str = "") -> str:
        if not self.id:
            raise CellblockError("the session is closed")
        return f"/v1/sessions/{self.id}" + (f"/{rest}" if rest else "")


def _inside(path: str) -> str:
    return path.lstrip("/") if path.startswith("/") else f"workspace/{path}"


def _events(response: io.BufferedIOBase) -> Iterator[dict[str, Any]]:
    for line in response:
        if line.startswith(b"data: "):
            yield json.loads(line[6:])


def _parquet(value: Any) -> bytes | None:
    """Returns a data frame's rows as Parquet; `None` if the value is no data frame."""
    library = type(value).__module__.partition(".")[0]
    to = io.BytesIO()
    if library == "pandas" and hasattr(value, "to_frame"):
        value = value.to_frame()
    if library == "pandas" and hasattr(value, "to_parquet"):
        value.to_parquet(to)
    elif library == "polars" and hasattr(value, "write_parquet"):
        value.write_parquet(to)
    elif library == "pyarrow" and hasattr(value, "to_batches"):
        import pyarrow.parquet

        pyarrow.parquet.write_table(value, to)
    else:
        return None
    return to.getvalue()
