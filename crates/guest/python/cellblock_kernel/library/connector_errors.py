"""Errors of connectors, in the module `cellblock` of cells. An uncaught one is shown as one line, because the fault is
not in the code's frames."""

from __future__ import annotations

import builtins
from typing import Any


class ConnectorError(Exception):
    """A call of a connector failed."""


class UnauthorizedError(ConnectorError):
    """The far side rejected the operator's credentials."""


class PaymentRequiredError(ConnectorError):
    """The far side requires a payment."""


class RateLimitError(ConnectorError):
    """The far side limits the rate of requests; `retry_after` is in seconds, if known."""

    retry_after: float | None = None


class ProviderError(ConnectorError):
    """The far side failed or cannot be reached; `status` is its HTTP status, if any."""

    status: int | None = None


class EmptyDataError(ConnectorError):
    """There is no data for these arguments."""


class ParseError(ConnectorError):
    """The answer is malformed, or not of the declared type."""


class InvalidParameterError(ConnectorError):
    """The function or an argument is invalid."""


class TimeoutError(ConnectorError, builtins.TimeoutError):
    """There was no answer in time."""


_KINDS: dict[str, type[ConnectorError]] = {
    "unauthorized": UnauthorizedError,
    "payment_required": PaymentRequiredError,
    "rate_limit": RateLimitError,
    "provider": ProviderError,
    "empty_data": EmptyDataError,
    "parse": ParseError,
    "invalid_parameter": InvalidParameterError,
    "timeout": TimeoutError,
}
for _kind in (ConnectorError, *_KINDS.values()):
    # Where cells find it.
    _kind.__module__ = "cellblock"


def of_host(code: str, message: str, details: Any) -> ConnectorError:
    """Returns the error with which the host answered a call."""
    error = _KINDS.get(code, ConnectorError)(message)
    known = details if isinstance(details, dict) else {}
    for key in ("retry_after", "status"):
        if key in known and hasattr(error, key):
            setattr(error, key, known[key])
    return error


def by_name() -> dict[str, type[ConnectorError]]:
    """Returns the errors."""
    return {kind.__name__: kind for kind in (ConnectorError, *_KINDS.values())}
