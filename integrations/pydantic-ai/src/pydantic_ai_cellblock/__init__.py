"""Cellblock for Pydantic AI: a toolset that runs Python, and a workspace.

from pydantic_ai import Agent
from pydantic_ai_cellblock import CellblockToolset

agent = Agent("…", toolsets=[CellblockToolset("http://127.0.0.1:8080")])
"""

from ._toolset import CellblockToolset
from ._workspace import CellblockWorkspace

__all__ = ["CellblockToolset", "CellblockWorkspace"]
