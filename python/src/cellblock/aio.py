"""The same sessions for asyncio.

    import cellblock.aio

    async with cellblock.aio.Session() as session:
        print((await session.run("20 + 22")).value)

A task that is cancelled while it waits for a cell interrupts the cell; the session goes on. Results are those of `cellblock`, and what
they fetch (`png`, `to_pandas()`) blocks: use `asyncio.to_thread` for large ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from . import _session
from ._errors import CellblockError
from ._results import Result
from ._shell import Command, CommandResult

__all__ = ["Session", "Shell"]

_T = TypeVar("_T")

#: Threads that wait for the server. Those of `asyncio.to_thread` are few, and all of them would wait for commands that one more is needed
#: to end.
_threads = ThreadPoolExecutor(max_workers=512, thread_name_prefix="cellblock")


def _start(work: Callable[..., _T], *arguments: Any, **named: Any) -> asyncio.Future[_T]:
    return asyncio.get_running_loop().run_in_executor(_threads, partial(work, *arguments, **named))


async def _both(first: asyncio.Future[Any], second: asyncio.Future[Any]) -> None:
    """Waits for both. Neither is canceled with this task, which anyio cancels again and again."""
    await asyncio.wait([first, second])


async def _in_thread(work: Callable[..., _T], *arguments: Any, **named: Any) -> _T:
    return await _start(work, *arguments, **named)


class Session:
    """A sandbox whose variables live until it ends. The arguments are those of `cellblock.Session`; it starts with `async with`."""

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
        self._arguments: dict[str, Any] = {
            "key": key,
            "image": image,
            "idle_timeout": idle_timeout,
            "limits": limits,
            "network": network,
            "id": id,
        }
        self._url = url
        self._session: _session.Session | None = None

    async def start(self) -> Session:
        """Starts the session, for programs that cannot use `async with`. They close it themselves."""
        if self._session is not None:
            return self
        start = _start(_session.Session, self._url, **self._arguments)
        try:
            self._session = await asyncio.shield(start)
        except asyncio.CancelledError:
            # The thread goes on: what it starts must not be left.
            start.add_done_callback(_close)
            raise
        return self

    async def __aenter__(self) -> Session:
        return await self.start()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    @property
    def _started(self) -> _session.Session:
        if self._session is None:
            raise CellblockError("the session has not started; use `async with`")
        return self._session

    @property
    def id(self) -> str:
        """The session's ID on its server, and empty after `close`."""
        return self._started.id

    @property
    def shell(self) -> Shell:
        """Runs commands in the sandbox, and reads and writes any of its files."""
        return Shell(self._started)

    async def alive(self) -> bool:
        """Whether the session has not ended, by itself or because it was closed."""
        return await _in_thread(lambda: self._started.alive)

    async def run(
        self,
        code: str,
        *,
        timeout: float | None = None,
        requirements: Sequence[str] = (),
        on_output: Callable[[str, str], None] | None = None,
    ) -> Result:
        """Runs a cell, as `cellblock.Session.run`. `on_output` is called in another thread."""
        session = self._started
        work = _start(session.run, code, timeout=timeout, requirements=requirements, on_output=on_output)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            await _both(_start(session.interrupt), work)
            raise

    async def interrupt(self) -> None:
        """Interrupts the cell that runs now. Its variables are kept."""
        await _in_thread(self._started.interrupt)

    async def reset(self) -> None:
        """Starts over with an empty sandbox."""
        await _in_thread(self._started.reset)

    async def variables(self) -> list[dict[str, Any]]:
        """Describes the session's variables."""
        return await _in_thread(self._started.variables)

    async def put(self, name: str, value: Any, *, format: str | None = None) -> list[str]:
        """Binds a value to a variable, as `cellblock.Session.put`."""
        return await _in_thread(self._started.put, name, value, format=format)

    async def write(self, path: str, content: bytes | str | Path) -> None:
        """Writes a file into the sandbox, as `cellblock.Session.write`."""
        await _in_thread(self._started.write, path, content)

    async def read(self, path: str) -> bytes:
        """Reads a file of the sandbox."""
        return await _in_thread(self._started.read, path)

    async def files(self) -> list[dict[str, Any]]:
        """Lists the files below `/workspace` and `/tmp/output`."""
        return await _in_thread(self._started.files)

    async def close(self) -> None:
        """Ends the session and its sandbox."""
        if self._session is not None:
            await _in_thread(self._session.close)


class Shell:
    """Runs commands and uses files, as `cellblock.Shell`. A task that is cancelled while it waits for a command kills it."""

    def __init__(self, session: _session.Session) -> None:
        self._shell = session.shell

    async def run(
        self,
        command: Sequence[str] | str,
        *,
        timeout: float | None = None,
        input: bytes | str | None = None,
        env: Mapping[str, str] | None = None,
        directory: str | None = None,
        merged: bool = False,
        max_output: int = 64 << 20,
    ) -> CommandResult:
        """Runs a command to its end, as `cellblock.Shell.run`."""
        order = partial(
            self._shell.start,
            command,
            timeout=timeout,
            input=input,
            env=env,
            directory=directory,
            merged=merged,
            max_output=max_output,
        )
        start = _start(order)
        try:
            started = await asyncio.shield(start)
        except asyncio.CancelledError:
            start.add_done_callback(_kill)
            raise
        result = _start(started.result)
        try:
            return await asyncio.shield(result)
        except asyncio.CancelledError:
            await _both(_start(started.kill), result)
            raise

    async def read(self, path: str, *, max_bytes: int = 256 << 20) -> bytes:
        """Reads a file, as `cellblock.Shell.read`."""
        return await _in_thread(self._shell.read, path, max_bytes=max_bytes)

    async def write(self, path: str, content: bytes | str) -> None:
        """Writes a file, as `cellblock.Shell.write`."""
        await _in_thread(self._shell.write, path, content)


def _kill(start: asyncio.Future[Command]) -> None:
    if not start.cancelled() and start.exception() is None:
        _threads.submit(start.result().kill)


def _close(start: asyncio.Future[_session.Session]) -> None:
    if not start.cancelled() and start.exception() is None:
        _threads.submit(start.result().close)
