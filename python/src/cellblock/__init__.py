"""Run Python code of a model in a sandbox, and get typed results.

    import cellblock

    with cellblock.Session() as session:
        session.run("x = 20 + 22")
        print(session.run("x").value)

A `Session` without an address starts Cellblock on this machine; with `url=` and `key=`, it uses a server. A `Client` is a server with
the volumes, runs, artifacts and skills of a key. `cellblock.aio` has the same for asyncio.
"""

from . import types
from ._branches import Try
from ._client import Client
from ._errors import CellblockError, CellError, ServerError
from ._process import Process
from ._results import Chart, Figure, File, Output, Result, Table
from ._session import Session
from ._shell import Command, CommandResult, Shell
from ._terminal import Terminal

__all__ = [
    "CellError",
    "CellblockError",
    "Chart",
    "Client",
    "Command",
    "CommandResult",
    "Figure",
    "File",
    "Output",
    "Process",
    "Result",
    "ServerError",
    "Session",
    "Shell",
    "Table",
    "Terminal",
    "Try",
    "types",
]
