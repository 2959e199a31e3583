"""What the helpers notice about a cell's data; told in the cell's `done`."""

from typing import Any

_MOST = 100
_found: list[dict[str, Any]] = []


def add(code: str, message: str, series: str | None = None, details: dict[str, Any] | None = None) -> None:
    """Notes something that a reader of the cell's outputs has to know. Details are JSON; what is beyond 100 findings is dropped."""
    finding: dict[str, Any] = {"code": code, "message": message}
    if series is not None:
        finding["series"] = series
    if details:
        finding["details"] = details
    if len(_found) < _MOST and finding not in _found:
        _found.append(finding)


def take() -> list[dict[str, Any]]:
    """All that was noticed since the last call."""
    taken = _found[:]
    _found.clear()
    return taken
