"""Cellblock as a sandbox of LangChain's Deep Agents.

from deepagents import create_deep_agent
from langchain_cellblock import CellblockSandbox

with CellblockSandbox("http://127.0.0.1:8080") as sandbox:
    agent = create_deep_agent(model="…", backend=sandbox)
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import cellblock
import cellblock.aio
from deepagents.backends.protocol import (
    FILE_NOT_FOUND,
    INVALID_PATH,
    IS_DIRECTORY,
    PERMISSION_DENIED,
    ExecuteResponse,
    FileDownloadResponse,
    FileUploadResponse,
)
from deepagents.backends.sandbox import BaseSandbox

__all__ = ["CellblockSandbox"]

#: As `timeout` of coreutils exits if the time of its command is over.
_TIMED_OUT = 124


class CellblockSandbox(BaseSandbox):
    """A sandbox of an agent: one session of Cellblock, which starts with the first use and ends with `close`.

    `url`, `key`, `idle_timeout`, `limits` and `network` are those of `cellblock.Session`; without `url`, Cellblock runs on this machine.
    `session` is a session to use instead, which stays open. `timeout` is how many seconds a command may run unless the caller says
    otherwise.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        idle_timeout: float = 3600,
        limits: Mapping[str, Any] | None = None,
        network: str | None = None,
        session: cellblock.Session | None = None,
        timeout: float = 1800,
        max_output: int = 16 << 20,
    ) -> None:
        self._url = url
        self._arguments: dict[str, Any] = {"key": key, "idle_timeout": idle_timeout, "limits": limits, "network": network}
        self._session = session
        self._is_own = session is None
        self._timeout = timeout
        self._max_output = max_output
        self._lock = threading.Lock()

    def __enter__(self) -> CellblockSandbox:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def session(self) -> cellblock.Session:
        """The session, which also runs cells: `sandbox.session.run("…")`."""
        with self._lock:
            if self._session is None:
                self._session = cellblock.Session(self._url, **self._arguments)
            return self._session

    @property
    def id(self) -> str:
        """The ID of the session on its server."""
        return self.session.id

    def close(self) -> None:
        """Ends the sandbox. The next use starts another."""
        with self._lock:
            if self._session is not None and self._is_own:
                self._session.close()
                self._session = None

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Runs a shell command and returns what it wrote to stdout and stderr. A timeout of 0 is none."""
        seconds = self._seconds(timeout)
        done = self.session.shell.run(command, timeout=seconds, merged=True, max_output=self._max_output)
        return _response(done, seconds)

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """The same for asyncio. The command is killed if the task is cancelled."""
        seconds = self._seconds(timeout)
        shell = cellblock.aio.Shell(await asyncio.to_thread(lambda: self.session))
        done = await shell.run(command, timeout=seconds, merged=True, max_output=self._max_output)
        return _response(done, seconds)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Writes files. Each has an answer of its own."""
        return [FileUploadResponse(path=path, error=self._upload(path, content)) for path, content in files]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Reads files. Each has an answer of its own."""
        return [self._download(path) for path in paths]

    def _upload(self, path: str, content: bytes) -> str | None:
        if not path.startswith("/"):
            return INVALID_PATH
        try:
            self.session.shell.write(path, content)
        except OSError as error:
            return _code(error)
        return None

    def _download(self, path: str) -> FileDownloadResponse:
        if not path.startswith("/"):
            return FileDownloadResponse(path=path, error=INVALID_PATH)
        try:
            return FileDownloadResponse(path=path, content=self.session.shell.read(path))
        except OSError as error:
            return FileDownloadResponse(path=path, error=_code(error))

    def _seconds(self, timeout: int | None) -> float | None:
        if timeout is None:
            return self._timeout
        return None if timeout == 0 else timeout


def _response(done: cellblock.CommandResult, seconds: float | None) -> ExecuteResponse:
    output = done.stdout.decode(errors="replace")
    if done.timed_out:
        note = f"the command was killed after {seconds:g} seconds; give a longer `timeout` or run it in the background"
        output += ("\n" if output and not output.endswith("\n") else "") + note
        return ExecuteResponse(output=output, exit_code=_TIMED_OUT, truncated=done.truncated)
    return ExecuteResponse(output=output, exit_code=done.exit_code, truncated=done.truncated)


def _code(error: OSError) -> str:
    match error:
        case FileNotFoundError():
            return FILE_NOT_FOUND
        case IsADirectoryError():
            return IS_DIRECTORY
        case PermissionError():
            return PERMISSION_DENIED
        case NotADirectoryError():
            return INVALID_PATH
    return str(error)
