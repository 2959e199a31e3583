"""Findings of the helpers about a cell's data, reported in the cell's `done`."""

from __future__ import annotations

from typing import Any

_MOST = 100
_found: list[dict[str, Any]] = []


def add(code: str, message: str, series: str | None = None, details: dict[str, Any] | None = None) -> None:
    """Adds a finding that readers of the cell's outputs must know. Details are JSON; findings beyond 100 are
    dropped."""
    finding: dict[str, Any] = {"code": code, "message": message}
    if series is not None:
        finding["series"] = series
    if details:
        finding["details"] = details
    if len(_found) < _MOST and finding not in _found:
        _found.append(finding)


def take() -> list[dict[str, Any]]:
    """Returns the findings since the last call."""
    taken = _found[:]
    _found.clear()
    return taken
