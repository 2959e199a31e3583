"""Inspect's own checks of a sandbox, against the server in CELLBLOCK_URL."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from inspect_ai.util import SandboxEnvironment
from inspect_ai.util._sandbox.registry import registry_find_sandboxenv
from inspect_ai.util._sandbox.self_check import *  # noqa: F403

pytestmark = pytest.mark.anyio

#: What a sandbox of Cellblock cannot do, with the reason.
UNSUPPORTED = {
    "test_exec_as_user": "a sandbox has one user, without root and without a way to add others",
}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def environment(anyio_backend: str) -> AsyncIterator[SandboxEnvironment]:
    # By its name, as a task names it.
    kind = registry_find_sandboxenv("cellblock")
    environments = await kind.sample_init("self_check", None, {})
    yield environments["default"]
    await kind.sample_cleanup("self_check", None, environments, False)


@pytest.fixture
def sandbox_env(environment: SandboxEnvironment, request: pytest.FixtureRequest) -> SandboxEnvironment:
    reason = UNSUPPORTED.get(request.node.originalname)
    if reason is not None:
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    return environment
