"""The part of a session that all of its operations share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from ._errors import CellblockError
from ._http import Form, Operation, Server

_T = TypeVar("_T")


class Handle:
    """A session's server and ID."""

    _server: Server
    #: ID of the session on its server; empty after `close`.
    id: str

    def _call(
        self,
        operation: Operation[_T],
        value: object = None,
        *,
        content: bytes | Form | None = None,
        query: Mapping[str, object] | None = None,
        **names: str | int,
    ) -> _T:
        """Calls an operation of this session."""
        return self._server.call(operation, value, content=content, query=query, id=self._open_id(), **names)

    def _open_id(self) -> str:
        if not self.id:
            raise CellblockError("the session is closed")
        return self.id


def given(**fields: object) -> dict[str, object]:
    """Returns the fields that have a value: a request without a field gets the server's default."""
    return {name: value for name, value in fields.items() if value is not None}


def inside(path: str) -> str:
    """Returns a sandbox's path as the API has it. Relative ones are below `/workspace`."""
    return path.lstrip("/") if path.startswith("/") else f"workspace/{path}"
