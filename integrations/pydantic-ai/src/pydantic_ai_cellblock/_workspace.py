"""A workspace of agents: one session of Cellblock."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import cellblock
import cellblock.aio
from pydantic_ai.workspaces import (
    CommandResult,
    WorkspaceCommand,
    WorkspaceOutputLimitError,
    WorkspaceRef,
    WorkspaceTimeoutError,
    WorkspaceUnavailableError,
)

_PROVIDER = "cellblock"
_REALPATH = "import os, sys; sys.stdout.buffer.write(os.path.realpath(os.fsencode(sys.argv[1])))"


class CellblockWorkspace:
    """The sandbox of a session as a workspace: `agent.run("…", workspace=CellblockWorkspace("http://127.0.0.1:8080"))`.

    The session starts with the first use. `ref` names it afterwards; with that `ref`, another workspace continues it. It ends with
    `destroy`, or after `idle_timeout` seconds without use. The other arguments are those of `cellblock.Session`; without `url`, Cellblock
    runs on this machine. Other file operations are those that `Workspace` derives from commands.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        ref: WorkspaceRef | None = None,
        idle_timeout: float = 3600,
        limits: Mapping[str, Any] | None = None,
        network: str | None = None,
        max_output: int = 16 << 20,
    ) -> None:
        if ref is not None and ref.provider != _PROVIDER:
            raise ValueError(f"the workspace is one of `{ref.provider}`, not of `{_PROVIDER}`")
        self._url = url
        self._key = key
        self._ref = ref
        self._settings: dict[str, Any] = {"idle_timeout": idle_timeout, "limits": limits, "network": network}
        self._max_output = max_output
        self._session: cellblock.aio.Session | None = None
        self._starting: asyncio.Task[cellblock.aio.Session] | None = None

    @property
    def ref(self) -> WorkspaceRef | None:
        """What names the session, from the first use on."""
        return self._ref

    async def session(self) -> cellblock.aio.Session:
        """The session, which also runs cells. Starts it if this is the first use."""
        if self._session is not None:
            return self._session
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
        # Not ended by a caller that is canceled: the session would run on without a name.
        return await asyncio.shield(self._starting)

    async def _start(self) -> cellblock.aio.Session:
        try:
            if self._ref is None:
                started = await cellblock.aio.Session(self._url, key=self._key, **self._settings).start()
                self._ref = WorkspaceRef(provider=_PROVIDER, id=started.id)
            else:
                started = await self._continue(self._ref.id)
            self._session = started
            return started
        finally:
            self._starting = None

    async def _continue(self, id: str) -> cellblock.aio.Session:
        if self._url is None:
            raise WorkspaceUnavailableError("a session on this machine ends with its program; it cannot be continued from its `ref`")
        try:
            return await cellblock.aio.Session(self._url, key=self._key, id=id).start()
        except cellblock.ServerError as error:
            if error.status == 404:
                raise WorkspaceUnavailableError(f"the session `{id}` has ended") from error
            raise

    async def destroy(self) -> None:
        """Ends the session. Nothing can continue it."""
        await (await self.session()).close()

    async def working_dir(self) -> str:
        """The folder in which commands start."""
        await self.session()
        return "/workspace"

    async def realpath(self, path: str) -> str:
        """Resolves the links in a path, in the sandbox."""
        session = await self.session()
        done = await session.shell.run(["python3", "-I", "-S", "-c", _REALPATH, path])
        if not done.ok:
            raise OSError(f"the links in `{path}` could not be resolved: {done.stderr.decode(errors='replace').strip()}")
        return os.fsdecode(done.stdout)

    async def run(
        self,
        command: WorkspaceCommand,
        *,
        shell: bool = False,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> CommandResult:
        """Runs a command to its end: a program with its arguments, or text for a shell with `shell=True`."""
        if isinstance(command, str) != shell:
            raise TypeError("a command is text with `shell=True`, or a sequence of words without it")
        session = await self.session()
        words = ["sh", "-c", command] if isinstance(command, str) else list(command)
        try:
            done = await session.shell.run(words, env=env, timeout=timeout, max_output=self._max_output)
        except cellblock.CellblockError as error:
            if not await session.alive():
                raise WorkspaceUnavailableError(f"the session `{session.id}` has ended") from error
            raise
        stdout, stderr = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        if done.timed_out:
            raise WorkspaceTimeoutError(f"the command was killed after {timeout:g} seconds", stdout=stdout, stderr=stderr)
        if done.truncated:
            message = f"the command wrote more than {self._max_output} bytes; redirect its output to a file"
            raise WorkspaceOutputLimitError(message, limit=self._max_output, stdout=stdout, stderr=stderr)
        return CommandResult(exit_code=done.exit_code, stdout=stdout, stderr=stderr)
