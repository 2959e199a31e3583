"""A sandbox session of the SDK: one session of Cellblock."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, Literal

import cellblock
import cellblock.aio
from agents.sandbox.errors import (
    ExecTimeoutError,
    ExecTransportError,
    WorkspaceArchiveReadError,
    WorkspaceArchiveWriteError,
    WorkspaceReadNotFoundError,
    WorkspaceWriteTypeError,
)
from agents.sandbox.session.base_sandbox_session import BaseSandboxSession
from agents.sandbox.session.runtime_helpers import RESOLVE_WORKSPACE_PATH_HELPER, RuntimeHelperScript
from agents.sandbox.session.sandbox_session_state import SandboxSessionState
from agents.sandbox.types import ExecResult, User
from agents.sandbox.util.tar_utils import UnsafeTarMemberError, validate_tar_bytes
from agents.sandbox.workspace_paths import sandbox_path_str
from pydantic import Field

#: The names of the only user that a sandbox has.
_USERS = ("user", "1000")


class CellblockSandboxSessionState(SandboxSessionState):
    """What another process needs to continue a session. The server's key is not part of it."""

    type: Literal["cellblock"] = "cellblock"
    #: Its ID on the server.
    cellblock_session: str
    #: The session's settings, for a new one if it has ended.
    settings: dict[str, Any] = Field(default_factory=dict)
    #: Environment variables of every command.
    env: dict[str, str] = Field(default_factory=dict)


class CellblockSandboxSession(BaseSandboxSession):
    """Commands and files of a session of Cellblock."""

    state: CellblockSandboxSessionState

    def __init__(self, state: CellblockSandboxSessionState, session: cellblock.aio.Session) -> None:
        self.state = state
        self.session = session

    async def _prepare_backend_workspace(self) -> None:
        await self._checked("mkdir", "-p", "--", sandbox_path_str(self.state.manifest.root), directory="/")

    def _runtime_helpers(self) -> tuple[RuntimeHelperScript, ...]:
        return (RESOLVE_WORKSPACE_PATH_HELPER,)

    async def _validate_path_access(self, path: Path | str, *, for_write: bool = False) -> Path:
        return await self._validate_remote_path_access(path, for_write=for_write)

    async def _exec_internal(self, *command: str | Path, timeout: float | None = None) -> ExecResult:
        words = [str(word) for word in command]
        # How the SDK asks for a user; a sandbox has no `sudo`.
        if words[:2] == ["sudo", "-u"] and words[3:4] == ["--"]:
            if words[2] not in _USERS:
                message = f"a sandbox of Cellblock has one user, `user`; it cannot run commands as `{words[2]}`"
                raise ExecTransportError(command=command, message=message, retryable=False)
            words = words[4:]
        directory = sandbox_path_str(self.state.manifest.root)
        try:
            done = await self._run(words, timeout=timeout, directory=directory)
        except (cellblock.CellblockError, OSError) as error:
            raise ExecTransportError(command=command, cause=error) from error
        if done.timed_out:
            raise ExecTimeoutError(command=command, timeout_s=timeout)
        return ExecResult(stdout=done.stdout, stderr=done.stderr, exit_code=done.exit_code)

    async def _run(self, words: list[str], *, timeout: float | None = None, directory: str) -> cellblock.CommandResult:
        env = {**self.state.env, **await self.state.manifest.environment.resolve()}
        # The SDK passes 0 for no time at all.
        seconds = None if timeout is None else max(timeout, 0.001)
        return await self.session.shell.run(words, timeout=seconds, env=env, directory=directory)

    async def _checked(self, *words: str, directory: str) -> None:
        done = await self._run(list(words), directory=directory)
        if not done.ok:
            raise OSError(f"`{words[0]}` exited with {done.exit_code}: {done.stderr.decode(errors='replace').strip()}")

    async def read(self, path: Path, *, user: str | User | None = None) -> io.IOBase:
        """Reads a file of the workspace."""
        if user is not None:
            await self._check_read_with_exec(path, user=user)
        inside = await self._validate_path_access(path)
        try:
            return io.BytesIO(await self.session.shell.read(sandbox_path_str(inside)))
        except FileNotFoundError as error:
            raise WorkspaceReadNotFoundError(path=path, cause=error) from error
        except (cellblock.CellblockError, OSError) as error:
            raise WorkspaceArchiveReadError(path=path, cause=error) from error

    async def _read_bounded(self, path: Path, *, max_bytes: int) -> bytes:
        inside = sandbox_path_str(await self._validate_path_access(path))
        script = '[ -e "$1" ] || exit 66; exec head -c "$2" -- "$1"'
        done = await self._run(["sh", "-c", script, "sh", inside, str(max_bytes)], directory="/")
        if done.exit_code == 66:
            raise WorkspaceReadNotFoundError(path=path)
        if not done.ok:
            raise WorkspaceArchiveReadError(path=path)
        return done.stdout

    async def write(self, path: Path, data: io.IOBase, *, user: str | User | None = None) -> None:
        """Writes a file of the workspace and creates missing folders."""
        if user is not None:
            await self._check_write_with_exec(path, user=user)
        content = _bytes(path, data)
        inside = await self._validate_path_access(path, for_write=True)
        try:
            await self.session.shell.write(sandbox_path_str(inside), content)
        except (cellblock.CellblockError, OSError) as error:
            raise WorkspaceArchiveWriteError(path=inside, cause=error) from error

    async def running(self) -> bool:
        """Whether the session has not ended."""
        try:
            return await self.session.alive()
        except cellblock.CellblockError:
            return False

    async def persist_workspace(self) -> io.IOBase:
        """Returns the workspace as a tar archive, without what the manifest says to leave out."""
        root = self._workspace_root_path()
        archive = self._archive()
        left_out = sorted(path.as_posix() for path in self._persist_workspace_skip_relpaths())
        tar = ["tar", "-cf", archive, "--no-wildcards", *(f"--exclude=./{path}" for path in left_out), "."]
        try:
            await self._checked(*tar, directory=root.as_posix())
            return io.BytesIO(await self.session.shell.read(archive, max_bytes=4 << 30))
        except (cellblock.CellblockError, OSError) as error:
            raise WorkspaceArchiveReadError(path=root, cause=error) from error
        finally:
            await self._run(["rm", "-f", "--", archive], directory="/")

    async def hydrate_workspace(self, data: io.IOBase) -> None:
        """Extracts a tar archive into the workspace."""
        root = self._workspace_root_path()
        content = _bytes(root, data)
        try:
            validate_tar_bytes(content, allow_external_symlink_targets=False)
        except UnsafeTarMemberError as error:
            context = {"reason": "unsafe_or_invalid_tar", "member": error.member, "detail": str(error)}
            raise WorkspaceArchiveWriteError(path=root, context=context, cause=error) from error
        archive = self._archive()
        try:
            await self.session.shell.write(archive, content)
            await self._checked("mkdir", "-p", "--", root.as_posix(), directory="/")
            await self._checked("tar", "-xf", archive, directory=root.as_posix())
        except (cellblock.CellblockError, OSError) as error:
            raise WorkspaceArchiveWriteError(path=root, cause=error) from error
        finally:
            await self._run(["rm", "-f", "--", archive], directory="/")

    def _archive(self) -> str:
        return f"/tmp/.openai-agents-{self.state.session_id.hex}.tar"

    async def _shutdown_backend(self) -> None:
        await self.session.close()


def _bytes(path: Path, data: io.IOBase) -> bytes:
    content = data.read()
    if isinstance(content, str):
        return content.encode()
    if not isinstance(content, bytes | bytearray):
        raise WorkspaceWriteTypeError(path=path, actual_type=type(content).__name__)
    return bytes(content)
