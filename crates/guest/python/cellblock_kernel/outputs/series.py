"""The data that a matplotlib figure shows, read back from its artists."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from typing import Any

from cellblock_kernel.outputs import coverage

MAX_POINTS = 1000
_MAX_SERIES = 200
_MAX_POINTS_IN_ALL = 30_000
_MAX_AXES = 50
_TEXT = 500
_POINT_TEXT = 100

Values = list[Any]


def axes_of(figure: Any) -> list[dict[str, str]]:
    """Returns titles and labels of the axes, in the order in which they were added."""
    return [
        {"title": _clip(axes.get_title()), "xlabel": _clip(axes.get_xlabel()), "ylabel": _clip(axes.get_ylabel())}
        for axes in figure.axes[:_MAX_AXES]
    ]


def series_of(figure: Any) -> list[dict[str, Any]]:
    """Returns every line, bar, scatter, area, histogram and image; unreadable artists are left out."""
    found: list[dict[str, Any]] = []
    budget = _MAX_POINTS_IN_ALL
    for number, axes in enumerate(figure.axes[:_MAX_AXES]):
        for read, artist in _artists(axes):
            if len(found) >= _MAX_SERIES:
                return found
            try:
                one = read(axes, artist)
            except Exception:
                continue
            if one is not None:
                budget -= len(one["x"])
                if budget < 0:
                    return found
                found.append({"axes": number, **one})
    return found


def of_spec(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the lines over time of a Vega-Lite specification: a reader finds other marks in the
    specification."""
    try:
        lines = coverage.of_spec(spec)
    except Exception:
        return []
    found: list[dict[str, Any]] = []
    for line in lines[:_MAX_SERIES]:
        one = _series("line", line["label"], line["x"], line["y"])
        found.append({"axes": 0, **one, "coverage": line["coverage"]})
    return found


def _artists(axes: Any) -> Iterable[tuple[Callable[[Any, Any], dict[str, Any] | None], Any]]:
    for line in axes.lines:
        yield _line, line
    for container in axes.containers:
        if type(container).__name__ == "BarContainer":
            yield _bars, container
    for collection in axes.collections:
        kind = type(collection).__name__
        if kind in ("PathCollection", "Path3DCollection"):
            yield _scatter, collection
        elif kind in ("PolyCollection", "FillBetweenPolyCollection"):
            yield _area, collection
    for image in axes.images:
        yield _image, image


def _series(kind: str, label: Any, x: Values, y: Values) -> dict[str, Any]:
    points = min(len(x), len(y))
    if points > MAX_POINTS:
        # Evenly spaced, including both ends.
        picked = [round(number * (points - 1) / (MAX_POINTS - 1)) for number in range(MAX_POINTS)]
        x, y = [x[number] for number in picked], [y[number] for number in picked]
    x, y = list(map(_value, x[:points])), list(map(_value, y[:points]))
    return {"label": _label(label), "kind": kind, "x": x, "y": y, "points": points}


def _label(label: Any) -> str:
    text = str(label or "")
    return "" if text.startswith("_") else _clip(text)


def _clip(text: Any) -> str:
    return str(text)[:_TEXT]


def _value(value: Any) -> Any:
    if type(value).__name__ == "MaskedConstant":
        return None
    if hasattr(value, "item") and not isinstance(value, str):
        if getattr(getattr(value, "dtype", None), "kind", "") == "M":
            return str(value)
        value = value.item()
    if isinstance(value, (bool, int)):
        return int(value) if -(2**53) <= value <= 2**53 else float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or value != value:
        return None
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return str(value)[:_POINT_TEXT]


def _dates(axis: Any, values: Values) -> Values:
    """Returns numbers on a date axis as dates, and on a category axis as names."""
    if not values or isinstance(values[0], str) or (not isinstance(values[0], (int, float)) and not hasattr(values[0], "item")):
        return values
    if getattr(getattr(values[0], "dtype", None), "kind", "") == "M":
        return values
    freq = getattr(axis.axes, "freq", None) if axis is axis.axes.xaxis else None
    if freq is not None:  # pandas numbers the periods that it plots
        pandas: Any = sys.modules["pandas"]
        return [pandas.Period(ordinal=int(value), freq=freq) for value in values]
    get = getattr(axis, "get_converter", None)
    converter = type(get() if get else axis.converter).__name__
    if "Date" in converter:
        dates: Any = sys.modules["matplotlib.dates"]
        return [moment.replace(tzinfo=None) if _is_utc(moment) else moment for moment in dates.num2date(values)]
    names = {place: name for name, place in getattr(axis.units, "_mapping", {}).items()} if axis.units is not None else {}
    if names:
        return [names.get(round(value), value) if float(value).is_integer() else value for value in values]
    return _tick_names(axis, values)


def _is_utc(moment: Any) -> bool:
    offset = moment.utcoffset()
    return offset is not None and not offset


def _tick_names(axis: Any, values: Values) -> Values:
    """Returns the names that pandas writes under its bars."""
    formatter = axis.get_major_formatter()
    if type(formatter).__name__ not in ("FixedFormatter", "FuncFormatter"):
        return values
    if type(axis.get_major_locator()).__name__ != "FixedLocator":
        return values
    ticks = list(axis.get_majorticklocs())
    names = {round(float(tick), 6): str(formatter(tick, number)) for number, tick in enumerate(ticks)}
    if not all(round(float(value), 6) in names for value in values):
        return values
    return [names[round(float(value), 6)] for value in values]


def _line(axes: Any, line: Any) -> dict[str, Any] | None:
    x, y = list(line.get_xdata(orig=True)), list(line.get_ydata(orig=True))
    if not x:
        return None
    found = _series("line", line.get_label(), _dates(axes.xaxis, x), y)
    share = coverage.of_line(axes, line)
    return found if share is None else {**found, "coverage": share}


def _bars(axes: Any, container: Any) -> dict[str, Any] | None:
    bars = list(container.patches)
    if not bars:
        return None
    if container.orientation == "horizontal":
        places = [bar.get_y() + bar.get_height() / 2 for bar in bars]
        return _series("bar", container.get_label(), [bar.get_width() for bar in bars], _dates(axes.yaxis, places))
    places = [bar.get_x() + bar.get_width() / 2 for bar in bars]
    kind = "hist" if _adjacent(bars) else "bar"
    heights = [bar.get_height() for bar in bars]
    return _series(kind, container.get_label(), _dates(axes.xaxis, places), heights)


def _adjacent(bars: list[Any]) -> bool:
    """Returns whether bars touch, as the bins of a histogram do."""
    if len(bars) < 2:
        return False
    width = max(abs(bar.get_width()) for bar in bars) or 1.0
    return all(abs(left.get_x() + left.get_width() - right.get_x()) < 1e-6 * width for left, right in zip(bars, bars[1:]))


def _scatter(axes: Any, collection: Any) -> dict[str, Any] | None:
    places = collection.get_offsets()
    if not len(places):
        return None
    return _series("scatter", collection.get_label(), _dates(axes.xaxis, list(places[:, 0])), list(places[:, 1]))


def _area(axes: Any, collection: Any) -> dict[str, Any] | None:
    paths = collection.get_paths()
    if not paths:
        return None
    corners = paths[0].vertices
    return _series("area", collection.get_label(), _dates(axes.xaxis, list(corners[:, 0])), list(corners[:, 1]))


def _image(axes: Any, image: Any) -> dict[str, Any] | None:
    shape = image.get_array().shape
    return {"label": _label(image.get_label()), "kind": "image", "x": [], "y": [], "points": int(shape[0] * shape[1])}
