"""Errors of the client."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._results import Result


class CellblockError(Exception):
    """An error of Cellblock, of its server or of the connection to it."""


class ServerError(CellblockError):
    """A server that refused a request or failed.

    `status` is the HTTP status, `code` the kind of error (such as `session_not_found`), and `retry_after` the number of seconds after
    which the request may succeed, if the server named one.
    """

    def __init__(self, status: int, code: str | None, message: str, retry_after: float | None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retry_after = retry_after


class CellError(CellblockError):
    """Code that raised, was interrupted, or exceeded a limit. `result` has everything that it did before."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.describe_error())
        self.result = result
