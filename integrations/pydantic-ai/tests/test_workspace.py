"""Pydantic AI's rules for workspaces, against the server in CELLBLOCK_URL."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from pydantic_ai.workspaces import WorkspaceBackend, WorkspaceRef
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite

from pydantic_ai_cellblock import CellblockWorkspace

URL, KEY = os.environ["CELLBLOCK_URL"], os.environ.get("CELLBLOCK_KEY")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class TestCellblockWorkspace(WorkspaceBackendSuite):
    @pytest.fixture
    async def backend(self, anyio_backend: str) -> AsyncIterator[WorkspaceBackend]:
        workspace = CellblockWorkspace(URL, key=KEY)
        yield workspace
        await workspace.destroy()

    @pytest.fixture
    def fresh_backend(self) -> Callable[[], WorkspaceBackend]:
        return lambda: CellblockWorkspace(URL, key=KEY, idle_timeout=60)

    @pytest.fixture
    def attach_backend(self) -> Callable[[WorkspaceRef], WorkspaceBackend]:
        return lambda ref: CellblockWorkspace(URL, key=KEY, ref=ref)

    @pytest.fixture
    def destroy_environment(self) -> Callable[[WorkspaceBackend], Awaitable[None]]:
        async def destroy(backend: WorkspaceBackend) -> None:
            assert isinstance(backend, CellblockWorkspace)
            await backend.destroy()

        return destroy
