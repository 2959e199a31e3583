"""Cellblock as a sandbox of the OpenAI Agents SDK.

from agents.run import RunConfig
from agents.sandbox import SandboxAgent, SandboxRunConfig
from openai_agents_cellblock import CellblockSandboxClient

config = RunConfig(sandbox=SandboxRunConfig(client=CellblockSandboxClient("http://127.0.0.1:8080")))
await Runner.run(SandboxAgent(name="…", model="…"), "…", run_config=config)
"""

from ._client import CellblockSandboxClient, CellblockSandboxClientOptions
from ._session import CellblockSandboxSession, CellblockSandboxSessionState

__all__ = [
    "CellblockSandboxClient",
    "CellblockSandboxClientOptions",
    "CellblockSandboxSession",
    "CellblockSandboxSessionState",
]
