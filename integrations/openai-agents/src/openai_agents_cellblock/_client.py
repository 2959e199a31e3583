"""Makes, continues and ends sandbox sessions."""

from __future__ import annotations

import uuid
from typing import Any, Literal

import cellblock
import cellblock.aio
from agents.sandbox.manifest import Manifest
from agents.sandbox.session import SandboxSession, SandboxSessionState
from agents.sandbox.session.dependencies import Dependencies
from agents.sandbox.session.manager import Instrumentation
from agents.sandbox.session.sandbox_client import BaseSandboxClient, BaseSandboxClientOptions
from agents.sandbox.snapshot import SnapshotBase, SnapshotSpec, resolve_snapshot

from ._session import CellblockSandboxSession, CellblockSandboxSessionState


class CellblockSandboxClientOptions(BaseSandboxClientOptions):
    """Settings of a session, as those of `cellblock.Session`, and the environment variables of its commands."""

    type: Literal["cellblock"] = "cellblock"
    network: str | None = None
    limits: dict[str, Any] | None = None
    idle_timeout: float = 3600
    env: dict[str, str] | None = None


class CellblockSandboxClient(BaseSandboxClient[CellblockSandboxClientOptions | None]):
    """A server of Cellblock that has an agent's sandboxes. Without `url`, Cellblock runs on this machine."""

    backend_id = "cellblock"
    supports_default_options = True

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        instrumentation: Instrumentation | None = None,
        dependencies: Dependencies | None = None,
    ) -> None:
        super().__init__()
        self._url = url
        self._key = key
        self._instrumentation = instrumentation or Instrumentation()
        self._dependencies = dependencies

    async def create(
        self,
        *,
        snapshot: SnapshotSpec | SnapshotBase | None = None,
        manifest: Manifest | None = None,
        options: CellblockSandboxClientOptions | None = None,
    ) -> SandboxSession:
        """Starts a session."""
        manifest = self._validate_manifest_for_create(manifest or Manifest())
        chosen = options or CellblockSandboxClientOptions()
        session_id = uuid.uuid4()
        settings = {"network": chosen.network, "limits": chosen.limits, "idle_timeout": chosen.idle_timeout}
        started = await self._start(settings)
        state = CellblockSandboxSessionState(
            session_id=session_id,
            manifest=manifest,
            snapshot=resolve_snapshot(snapshot, str(session_id)),
            cellblock_session=started.id,
            settings=settings,
            env=chosen.env or {},
        )
        return self._wrap_session(CellblockSandboxSession(state, started), instrumentation=self._instrumentation)

    async def delete(self, session: SandboxSession) -> SandboxSession:
        """Ends a session. Ending it again does nothing."""
        inner = session._inner
        if not isinstance(inner, CellblockSandboxSession):
            raise TypeError(f"`{type(inner).__name__}` is not a session of Cellblock")
        await inner.shutdown()
        return session

    async def resume(self, state: SandboxSessionState) -> SandboxSession:
        """Continues a session, or starts another from its snapshot if it has ended."""
        if not isinstance(state, CellblockSandboxSessionState):
            raise TypeError(f"`{type(state).__name__}` is not the state of a session of Cellblock")
        state.assert_path_grants_rebound()
        started = await self._continue(state.cellblock_session)
        is_same = started is not None
        if started is None:
            started = await self._start(state.settings)
            state.cellblock_session = started.id
            state.workspace_root_ready = False
        inner = CellblockSandboxSession(state, started)
        inner._set_start_state_preserved(is_same)
        return self._wrap_session(inner, instrumentation=self._instrumentation)

    def deserialize_session_state(self, payload: dict[str, object]) -> SandboxSessionState:
        """Reads a state that `serialize_session_state` wrote."""
        return self._deserialize_session_state_payload(payload, CellblockSandboxSessionState)

    async def _start(self, settings: dict[str, Any]) -> cellblock.aio.Session:
        return await cellblock.aio.Session(self._url, key=self._key, **settings).start()

    async def _continue(self, id: str) -> cellblock.aio.Session | None:
        if self._url is None:
            # The server of this machine ends with the process that started it.
            return None
        try:
            return await cellblock.aio.Session(self._url, key=self._key, id=id).start()
        except cellblock.ServerError as error:
            if error.status == 404:
                return None
            raise
