"""Run Python code of a model in a sandbox, and get typed results.

    import cellblock

    with cellblock.Session() as session:
        session.run("x = 20 + 22")
        print(session.run("x").value)

A `Session` without an address starts Cellblock on this machine; with `url=` and `key=`, it uses a server. `cellblock.aio` has the same
for asyncio.
"""

from ._errors import CellblockError, CellError, ServerError
from ._results import Chart, Figure, File, Output, Result, Table
from ._session import Session
from ._shell import Command, CommandResult, Shell

__all__ = [
    "CellError",
    "CellblockError",
    "Chart",
    "Command",
    "CommandResult",
    "Figure",
    "File",
    "Output",
    "Result",
    "ServerError",
    "Session",
    "Shell",
    "Table",
]
