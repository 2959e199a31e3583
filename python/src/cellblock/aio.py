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
from pathlib import Path
from types import TracebackType
from typing import Any

from . import _session
from ._errors import CellblockError
from ._results import Result

__all__ = ["Session"]


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
    ) -> None:
        self._arguments: dict[str, Any] = {
            "key": key,
            "image": image,
            "idle_timeout": idle_timeout,
            "limits": limits,
            "network": network,
        }
        self._url = url
        self._session: _session.Session | None = None

    async def __aenter__(self) -> Session:
        start = asyncio.ensure_future(asyncio.to_thread(_session.Session, self._url, **self._arguments))
        try:
            self._session = await asyncio.shield(start)
        except asyncio.CancelledError:
            # The thread goes on: what it starts must not be left.
            start.add_done_callback(_close)
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    @property
    def _started(self) -> _session.Session:
        if self._session is None:
            raise CellblockError("the session has not started; use `async with`")
        return self._session

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
        work = asyncio.ensure_future(asyncio.to_thread(session.run, code, timeout=timeout, requirements=requirements, on_output=on_output))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.to_thread(session.interrupt)
            await asyncio.wait([work])
            raise

    async def interrupt(self) -> None:
        """Interrupts the cell that runs now. Its variables are kept."""
        await asyncio.to_thread(self._started.interrupt)

    async def reset(self) -> None:
        """Starts over with an empty sandbox."""
        await asyncio.to_thread(self._started.reset)

    async def variables(self) -> list[dict[str, Any]]:
        """Describes the session's variables."""
        return await asyncio.to_thread(self._started.variables)

    async def put(self, name: str, value: Any, *, format: str | None = None) -> None:
        """Binds a value to a variable, as `cellblock.Session.put`."""
        await asyncio.to_thread(self._started.put, name, value, format=format)

    async def write(self, path: str, content: bytes | str | Path) -> None:
        """Writes a file into the sandbox, as `cellblock.Session.write`."""
        await asyncio.to_thread(self._started.write, path, content)

    async def read(self, path: str) -> bytes:
        """Reads a file of the sandbox."""
        return await asyncio.to_thread(self._started.read, path)

    async def files(self) -> list[dict[str, Any]]:
        """Lists the files below `/workspace` and `/tmp/output`."""
        return await asyncio.to_thread(self._started.files)

    async def close(self) -> None:
        """Ends the session and its sandbox."""
        if self._session is not None:
            await asyncio.to_thread(self._session.close)


def _close(start: asyncio.Future[_session.Session]) -> None:
    if not start.cancelled() and start.exception() is None:
        start.result().close()
