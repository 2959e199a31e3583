"""How much of its axis' time range a plotted line covers.

A line over times is expected to have a point at each of its own steps from the first to the last time of any
line on the axis. Its coverage is the share of these points that it has with a finite value. Times with a
missing value count as expected, so that gaps show whether they were plotted as NaN or left out. Dates as text,
which matplotlib and Vega-Lite treat as categories, count as times. Times of day as text are expected only if
the axis has them, so that the nights of intraday data do not count.
"""

from __future__ import annotations

import datetime
import math
import sys
from collections.abc import Iterator
from typing import Any

from cellblock_kernel.cell.pattern import pattern

_FEWEST = 3
_MONTH = pattern(r"\d{4}-\d{2}")
_DAY = 86_400.0
# Channels of Vega-Lite that draw a separate line for each of their values.
_SPLITTING = ("color", "stroke", "strokeDash", "detail", "opacity", "size", "row", "column", "facet")


def of_line(axes: Any, line: Any) -> float | None:
    """Returns the coverage of a matplotlib line, from 0 to 1; None for a line that is not over time or is too
    short."""
    numpy: Any = sys.modules["numpy"]
    times = _times_of_categories(axes)
    if (times is None and not _is_time(axes)) or not _in_data(axes, line):
        return None
    x, y = _points(numpy, axes, line, times)
    of_all = [_points(numpy, other, one, times)[0] for other, one in _lines(axes)]
    every = numpy.unique(numpy.concatenate([x, *of_all]))
    return _share(numpy, x, y, every, by_category=times is not None)


def of_spec(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the lines over time of a Vega-Lite specification, each with its coverage."""
    numpy: Any = sys.modules.get("numpy")
    found: list[dict[str, Any]] = []
    for view in _views(spec) if numpy is not None else ():
        lines = [line for unit in view for line in _lines_of_unit(unit, spec)]
        if not lines:
            continue
        every = numpy.unique(numpy.array([time for line in lines for time in line.x]))
        for line in lines:
            x, y = numpy.array(line.x, dtype=float), numpy.array(line.y, dtype=float)
            share = _share(numpy, x, y, every, line.by_category)
            if share is not None:
                found.append({"label": line.label, "x": line.shown, "y": line.y, "coverage": share})
    return found


def _share(numpy: Any, x: Any, y: Any, every: Any, by_category: bool) -> float | None:
    """Returns the coverage of a line, if lines on its axis have points at `every` time."""
    places = numpy.unique(x)
    if len(places) < 2 or len(every) < 2:
        return None
    step = float(numpy.median(numpy.diff(places)))
    expected = max(len(places), 1 + round(float(every[-1] - every[0]) / step))
    if by_category and (every % _DAY != 0).any():
        expected = min(expected, len(every))
    if expected < _FEWEST:
        return None
    finite = len(numpy.unique(x[numpy.isfinite(y)]))
    return min(1.0, finite / expected)


def _points(numpy: Any, axes: Any, line: Any, times: dict[int, float] | None) -> tuple[Any, Any]:
    """Returns times and values of the points inside the view."""
    x = numpy.ma.filled(numpy.ma.asarray(line.get_xdata(orig=False), dtype=float), numpy.nan)
    y = numpy.ma.filled(numpy.ma.asarray(line.get_ydata(orig=False), dtype=float), numpy.nan)
    low, high = _view(axes)
    placed = numpy.isfinite(x) & (x >= low) & (x <= high)
    x, y = x[placed], y[placed]
    return (x if times is None else numpy.array([times[round(place)] for place in x], dtype=float)), y


def _is_time(axes: Any) -> bool:
    converter = type(_converter(axes)).__name__
    return "Date" in converter or "Period" in converter or getattr(axes, "freq", None) is not None


def _converter(axes: Any) -> Any:
    get = getattr(axes.xaxis, "get_converter", None)
    return get() if get else axes.xaxis.converter


def _times_of_categories(axes: Any) -> dict[int, float] | None:
    """Returns the times of an axis whose categories are dates as text."""
    names = getattr(axes.xaxis.units, "_mapping", None) if "Category" in type(_converter(axes)).__name__ else None
    times = {place: _seconds(name) for name, place in (names or {}).items()}
    known = {place: time for place, time in times.items() if time is not None}
    return known if known and len(known) == len(times) else None


def _seconds(value: Any) -> float | None:
    """Returns a date as text, or a number of milliseconds as in Vega-Lite, in seconds; None for anything
    else."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value / 1000 if math.isfinite(value) else None
    if not isinstance(value, str):
        return None
    text = value.strip()
    try:
        moment = datetime.datetime.fromisoformat(f"{text}-01" if _MONTH.fullmatch(text) else text)
    except ValueError:
        return None
    # Eight digits may also be a number.
    return None if text.isdigit() else moment.replace(tzinfo=moment.tzinfo or datetime.timezone.utc).timestamp()


def _in_data(axes: Any, line: Any) -> bool:
    """Returns whether the line's positions are times; those of `axhline` are shares of the axis."""
    along, _ = line.get_transform().contains_branch_seperately(axes.transData)
    return bool(along)


def _view(axes: Any) -> tuple[float, float]:
    """Returns the visible range: everything, unless the cell has set limits."""
    if axes.get_autoscalex_on():
        return float("-inf"), float("inf")
    low, high = sorted(axes.get_xlim())
    return low, high


def _lines(axes: Any) -> Iterator[tuple[Any, Any]]:
    """Returns every line on the axis, including those of axes that share it."""
    for other in axes.get_shared_x_axes().get_siblings(axes):
        for line in other.lines:
            if _in_data(other, line):
                yield other, line


class _Line:
    """One line of a specification."""

    def __init__(self, label: str, by_category: bool) -> None:
        self.label = label
        self.by_category = by_category
        self.x: list[float] = []
        self.y: list[float] = []
        # The times as written.
        self.shown: list[Any] = []


def _views(spec: dict[str, Any], above: dict[str, Any] | None = None) -> Iterator[list[dict[str, Any]]]:
    """Returns the parts of a specification with their own axes, each with its layers, which inherit data and
    encodings."""
    above = above or {}
    encoding = {**above.get("encoding", {}), **_dict(spec.get("encoding"))}
    here = {**spec, "encoding": encoding, "data": spec.get("data") or above.get("data")}
    here["transform"] = [*above.get("transform", []), *(spec.get("transform") or [])]
    parts = [part for key in ("hconcat", "vconcat", "concat") for part in spec.get(key) or ()]
    if isinstance(spec.get("spec"), dict):
        parts.append(spec["spec"])
    if isinstance(spec.get("layer"), list):
        yield [unit for layer in spec["layer"] if isinstance(layer, dict) for units in _views(layer, here) for unit in units]
    elif parts:
        for part in parts:
            if isinstance(part, dict):
                yield from _views(part, {**here, "encoding": {}})
    elif "mark" in spec:
        yield [here]


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _lines_of_unit(unit: dict[str, Any], spec: dict[str, Any]) -> list[_Line]:
    """Returns the lines of one mark over times, unless Vega-Lite itself computes their points."""
    mark = unit["mark"]
    kind = mark.get("type") if isinstance(mark, dict) else mark
    encoding = unit["encoding"]
    x, y = _dict(encoding.get("x")), _dict(encoding.get("y"))
    computed = unit["transform"] or any(one.get(key) for one in (x, y) for key in ("aggregate", "bin", "timeUnit"))
    if (
        kind not in ("line", "area", "trail")
        or computed
        or not isinstance(x.get("field"), str)
        or not isinstance(y.get("field"), str)
    ):
        return []
    data = _dict(unit.get("data"))
    rows = data.get("values") or _dict(spec.get("datasets")).get(data.get("name"))
    rows = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    times = [_seconds(row.get(x["field"])) for row in rows]
    by_category = x.get("type") != "temporal"
    if by_category and (any(time is None for time in times) or not all(isinstance(row.get(x["field"]), str) for row in rows)):
        return []
    splitting = [one["field"] for one in (_dict(encoding.get(name)) for name in _SPLITTING) if isinstance(one.get("field"), str)]
    lines: dict[tuple[str, ...], _Line] = {}
    for row, time in zip(rows, times):
        if time is None:
            continue
        key = tuple(str(row.get(name)) for name in splitting)
        line = lines.setdefault(key, _Line(" / ".join(key) or y["field"], by_category))
        value = row.get(y["field"])
        line.x.append(time)
        line.y.append(float(value) if isinstance(value, (int, float)) else math.nan)
        line.shown.append(row.get(x["field"]))
    return list(lines.values())
