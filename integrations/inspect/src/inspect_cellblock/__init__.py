"""Cellblock as a sandbox of Inspect AI: `sandbox="cellblock"`.

The server is that of `CELLBLOCK_URL` with the key `CELLBLOCK_KEY`, or that of a `CellblockConfig`. Without one, Cellblock runs on this
machine.
"""

from ._sandbox import CellblockConfig, CellblockSandboxEnvironment

__all__ = ["CellblockConfig", "CellblockSandboxEnvironment"]
