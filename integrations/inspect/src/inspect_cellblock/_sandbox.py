"""The sandbox environment of a sample: one session of Cellblock."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeVar, overload

import anyio
import anyio.to_thread
import cellblock
from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxEnvironment,
    SandboxEnvironmentConfigType,
    SandboxEnvironmentLimits,
    SandboxUserUnsupportedError,
    sandboxenv,
)
from pydantic import BaseModel, ConfigDict

_T = TypeVar("_T")

#: The names of the only user that a sandbox has.
_USERS = ("user", "1000")


class CellblockConfig(BaseModel, frozen=True):
    """Settings of the sessions of samples. A key is not one of them, because Inspect writes configurations to its logs."""

    model_config = ConfigDict(extra="forbid")

    #: Address of the server; by default `CELLBLOCK_URL`, or else Cellblock on this machine.
    url: str | None = None
    #: Network that code can use: `none`, `loopback` or `egress`.
    network: str | None = None
    #: Limits of the sandbox, as in `POST /v1/sessions`.
    limits: dict[str, Any] | None = None
    #: Seconds without a request after which a sample's session ends.
    idle_timeout: float = 3600


@sandboxenv(name="cellblock")
class CellblockSandboxEnvironment(SandboxEnvironment):
    """A session of Cellblock. Relative paths are below `/workspace`."""

    def __init__(self, session: cellblock.Session) -> None:
        super().__init__()
        self.session = session
        # Each command that runs holds a thread, which waits for it.
        self._threads = anyio.CapacityLimiter(256)

    @classmethod
    def default_concurrency(cls) -> int | None:
        """A server gives one key at most 50 sessions, and a sandbox is made of this machine's memory."""
        return 2 * (os.cpu_count() or 1)

    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> BaseModel:
        """Reads a configuration from a log."""
        return CellblockConfig(**config)

    @classmethod
    async def sample_init(
        cls, task_name: str, config: SandboxEnvironmentConfigType | None, metadata: dict[str, str]
    ) -> dict[str, SandboxEnvironment]:
        """Starts the session of a sample."""
        if config is not None and not isinstance(config, CellblockConfig):
            raise TypeError(f"invalid configuration `{config}` of the sandbox `cellblock`: must be a `CellblockConfig`")
        settings = config or CellblockConfig()
        start = partial(
            cellblock.Session,
            settings.url or os.environ.get("CELLBLOCK_URL"),
            key=os.environ.get("CELLBLOCK_KEY"),
            network=settings.network,
            limits=settings.limits,
            idle_timeout=settings.idle_timeout,
        )
        return {"default": cls(await anyio.to_thread.run_sync(start))}

    @classmethod
    async def sample_cleanup(
        cls,
        task_name: str,
        config: SandboxEnvironmentConfigType | None,
        environments: dict[str, SandboxEnvironment],
        interrupted: bool,
    ) -> None:
        """Ends the session of a sample."""
        with anyio.CancelScope(shield=True):
            for environment in environments.values():
                await anyio.to_thread.run_sync(environment.as_type(cls).session.close)

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        """Runs a command. It is not repeated after a timeout: it was killed, and may have done half of its work."""
        if user is not None and user not in _USERS:
            raise SandboxUserUnsupportedError(f"a sandbox of Cellblock has one user, `user`; it cannot run commands as `{user}`")
        start = partial(
            self.session.shell.start,
            cmd,
            input=input,
            directory=cwd,
            env=env,
            timeout=timeout,
            max_output=SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE,
        )
        command = await self._in_thread(start)
        try:
            done = await self._in_thread(command.result, abandon=True)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._in_thread(command.kill)
            raise
        stdout, stderr = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        if done.timed_out:
            raise TimeoutError(f"the command `{cmd[0]}` was killed after {timeout} seconds")
        if done.truncated:
            raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR, stdout or stderr)
        if done.exit_code == 126 and "permission denied" in stderr.lower():
            raise PermissionError(errno.EACCES, stderr.strip(), cmd[0])
        return ExecResult(success=done.exit_code == 0, returncode=done.exit_code, stdout=stdout, stderr=stderr)

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Writes a file and creates missing folders."""
        await self._in_thread(self.session.shell.write, file, contents)

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        """Reads a file."""
        read = partial(self.session.shell.read, file, max_bytes=SandboxEnvironmentLimits.MAX_READ_FILE_SIZE)
        try:
            content = await self._in_thread(read)
        except OSError as error:
            if error.errno == errno.EFBIG:
                raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, None) from error
            raise
        return content.decode() if text else content

    def default_polling_interval(self) -> float:
        """Seconds between the requests of Inspect's services to the sandbox."""
        return 0.2

    async def _in_thread(self, work: Callable[..., _T], *arguments: Any, abandon: bool = False) -> _T:
        return await anyio.to_thread.run_sync(work, *arguments, abandon_on_cancel=abandon, limiter=self._threads)
