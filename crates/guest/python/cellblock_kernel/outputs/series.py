"""The data that a matplotlib figure shows, read back from its artists."""

from __future__ import annotations

import math
from typing import Any

from cellblock_kernel.outputs import artists
from cellblock_kernel.outputs.coverage import of_spec as lines_of_spec
from cellblock_kernel.outputs.positions import Values, spelled

MAX_POINTS = 1000
_MAX_SERIES = 200
_MAX_POINTS_IN_ALL = 30_000
_MAX_AXES = 50
_TEXT = 500
_POINT_TEXT = 100


def axes_of(figure: Any) -> list[dict[str, str]]:
    """Returns titles and labels of the axes, in the order in which they were added."""
    return [
        {"title": _clip(axes.get_title()), "xlabel": _clip(axes.get_xlabel()), "ylabel": _clip(axes.get_ylabel())}
        for axes in figure.axes[:_MAX_AXES]
    ]


def series_of(figure: Any) -> list[dict[str, Any]]:
    """Returns every series of every panel; unreadable ones are left out."""
    found: list[dict[str, Any]] = []
    budget = _MAX_POINTS_IN_ALL
    for number, axes in enumerate(figure.axes[:_MAX_AXES]):
        if axes.get_label() == "<colorbar>":
            continue
        for reading in artists.read(axes):
            if len(found) >= _MAX_SERIES:
                return found
            try:
                one = _series(**reading)
            except Exception:
                continue
            budget -= len(one["x"]) * (1 + len(one.get("columns", ())))
            if budget < 0:
                return found
            found.append({"axes": number, **one})
    return found


def of_spec(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the lines over time of a Vega-Lite specification: a reader finds other marks in the
    specification."""
    try:
        lines = lines_of_spec(spec)
    except Exception:
        return []
    found: list[dict[str, Any]] = []
    for line in lines[:_MAX_SERIES]:
        found.append({"axes": 0, **_series("line", **line)})
    return found


def _series(
    kind: str,
    label: Any,
    x: Values,
    y: Values,
    columns: dict[str, Values] | None = None,
    points: int | None = None,
    coverage: float | None = None,
) -> dict[str, Any]:
    count = min(len(x), len(y))
    named = {"x": x, "y": y, **{name: column for name, column in (columns or {}).items() if len(column) >= count}}
    if count > MAX_POINTS:
        # Evenly spaced, including both ends.
        picked = [round(number * (count - 1) / (MAX_POINTS - 1)) for number in range(MAX_POINTS)]
        named = {name: [column[number] for number in picked] for name, column in named.items()}
    named = {name: list(map(_value, spelled(list(column[:count])))) for name, column in named.items()}
    one = {
        "label": _label(label),
        "kind": kind,
        "x": named.pop("x"),
        "y": named.pop("y"),
        "points": count if points is None else points,
    }
    if named:
        one["columns"] = named
    if coverage is not None:
        one["coverage"] = coverage
    return one


def _label(label: Any) -> str:
    text = str(label or "")
    return "" if text.startswith("_") else _clip(text)


def _clip(text: Any) -> str:
    return str(text)[:_TEXT]


def _value(value: Any) -> Any:
    if type(value).__name__ == "MaskedConstant":
        return None
    if hasattr(value, "item") and not isinstance(value, str):
        value = value.item()
    if isinstance(value, (bool, int)):
        return int(value) if -(2**53) <= value <= 2**53 else float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or value != value:
        return None
    return str(value)[:_POINT_TEXT]
