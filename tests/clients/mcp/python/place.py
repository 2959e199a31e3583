"""Where the server is, and how a client of either revision is connected to it.

`CELLBLOCK_MCP_COMMAND`, a JSON array, is started over stdio; without it `CELLBLOCK_MCP_URL` is asked with `CELLBLOCK_KEY`.
"""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

COMMAND: Final[list[str]] = json.loads(os.environ.get("CELLBLOCK_MCP_COMMAND", "[]"))
URL: Final = os.environ.get("CELLBLOCK_MCP_URL", "")
KEY: Final = os.environ.get("CELLBLOCK_KEY", "")

# What the client's modes agree on.
REVISIONS: Final = {"legacy": "2025-11-25", "auto": "2026-07-28"}
# Longer than any answer takes on a busy machine: what waits so long hangs.
PATIENCE: Final = 120.0


@asynccontextmanager
async def connected(mode: str, key: str = KEY, **options: Any) -> AsyncIterator[Client]:
    """A client that has begun to talk to the server."""
    options = {"mode": mode, "read_timeout_seconds": PATIENCE, **options}
    if COMMAND:
        # The client starts what it starts with few variables unless it is told others.
        server = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=dict(os.environ))
        async with Client(server, **options) as client:
            yield client
        return
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http,
        Client(streamable_http_client(URL, http_client=http), **options) as client,
    ):
        yield client
