"""Figures of matplotlib as data, in the form of E2B's charts."""

from __future__ import annotations

import re
from typing import Any

_UNIT = re.compile(r"\s\((.*?)\)|\[(.*?)\]")
_DIGITS = 8

Chart = dict[str, Any]


def of_figure(figure: Any) -> Chart | None:
    """Returns a figure's chart, or one of several charts if it has several axes; None if it is empty."""
    axes = figure.get_axes()
    if not any(one.has_data() for one in axes):
        return None
    if len(axes) == 1:
        return _of_axes(axes[0])
    title = figure.get_suptitle() if hasattr(figure, "get_suptitle") else ""
    return {"type": "superchart", "title": title or None, "elements": [_of_axes(one) for one in axes]}


def _of_axes(axes: Any) -> Chart:
    kind = _kind(axes)
    chart: Chart = {"type": kind, "title": axes.get_title() or None, "elements": []}
    if kind == "pie":
        chart["elements"] = [_wedge(wedge) for wedge in axes.patches]
    elif kind != "unknown":
        chart.update(_labels(axes))
        _FILL[kind](axes, chart)
    return chart


def _kind(axes: Any) -> str:
    drawn = [(_class(artist), artist) for artist in axes._children]
    drawn = [(name, artist) for name, artist in drawn if name != "Text"]
    if all(name == "Line2D" for name, _ in drawn):
        return "line"
    if all(name in ("PathPatch", "Line2D") for name, _ in drawn):
        return "box_and_whisker"
    rest = {name for name, artist in drawn if not (name == "Line2D" and _is_grid(artist))}
    if len(rest) != 1:
        return "unknown"
    return {"PathCollection": "scatter", "Wedge": "pie", "Rectangle": "bar"}.get(rest.pop(), "unknown")


def _class(artist: Any) -> str:
    # Subclasses of these count as they do.
    known = ("Text", "Line2D", "PathPatch", "PathCollection", "Wedge", "Rectangle")
    return next((base.__name__ for base in type(artist).__mro__ if base.__name__ in known), type(artist).__name__)


def _labels(axes: Any) -> Chart:
    x, y = axes.get_xlabel() or None, axes.get_ylabel() or None
    return {"x_label": x, "y_label": y, "x_unit": _unit(x), "y_unit": _unit(y)}


def _unit(label: str | None) -> str | None:
    found = _UNIT.search(label) if label else None
    return (found.group(1) or found.group(2)) if found else None


def _turn(chart: Chart) -> None:
    for name in ("label", "unit"):
        chart[f"x_{name}"], chart[f"y_{name}"] = chart[f"y_{name}"], chart[f"x_{name}"]


def _wedge(wedge: Any) -> Chart:
    return {"label": wedge.get_label(), "angle": abs(_round(wedge.theta2 - wedge.theta1)), "radius": float(wedge.r)}


def _fill_lines(axes: Any, chart: Chart) -> None:
    chart.update(_scales(axes))
    for line in axes.get_lines():
        if not _is_grid(line):
            points = [[_point(x), _point(y)] for x, y in zip(line.get_xdata(), line.get_ydata())]
            chart["elements"].append({"label": _named(line.get_label(), "_child", "Line"), "points": points})


def _fill_scatter(axes: Any, chart: Chart) -> None:
    chart.update(_scales(axes))
    for collection in axes.collections:
        points = [[float(x), float(y)] for x, y in collection.get_offsets()]
        chart["elements"].append({"label": collection.get_label(), "points": points})


def _fill_bars(axes: Any, chart: Chart) -> None:
    for container in axes.containers:
        group = _named(container.get_label(), "_container", "Group")
        is_lying = getattr(container, "orientation", "vertical") == "horizontal"
        axis = axes.yaxis if is_lying else axes.xaxis
        values = [bar.get_width() if is_lying else bar.get_height() for bar in container]
        labels = [label.get_text() for label in axis.get_ticklabels()]
        for label, value in zip(labels, values):
            chart["elements"].append({"label": label, "group": group, "value": float(value)})
    if any(getattr(container, "orientation", "vertical") == "horizontal" for container in axes.containers):
        _turn(chart)


def _fill_boxes(axes: Any, chart: Chart) -> None:
    boxes = [_Box(patch) for patch in axes.patches]
    # Boxes that stand have the same width; E2B turns those whose heights are equal.
    is_lying = len({box.height for box in boxes}) == 1
    axis = axes.yaxis if is_lying else axes.xaxis
    if is_lying:
        _turn(chart)
    lines = [([_round(x) for x in line.get_xdata()], [_round(y) for y in line.get_ydata()]) for line in axes.lines]
    for box, label in zip(boxes, axis.get_ticklabels()):
        chart["elements"].append({"label": label.get_text(), **box.summary(lines, is_lying)})


class _Box:
    """The box of a box plot: where it is across the axis of values, and its quartiles along it."""

    def __init__(self, patch: Any) -> None:
        vertices = patch.get_path().vertices
        self._x, self._y = [_round(x) for x in vertices[:, 0]], [_round(y) for y in vertices[:, 1]]
        self.height = _round(max(self._y) - min(self._y))

    def summary(self, lines: list[tuple[list[float], list[float]]], is_lying: bool) -> Chart:
        """Returns the numbers of the box, which it finds among the lines of the plot."""
        across, along = (self._y, self._x) if is_lying else (self._x, self._y)
        first, third = min(along), max(along)
        found: Chart = {"min": first, "first_quartile": first, "median": first, "third_quartile": third, "max": third}
        found["outliers"] = []
        for x, y in lines:
            place, value = (y, x) if is_lying else (x, y)
            if not place or not all(min(across) <= one <= max(across) for one in place):
                continue
            if len(place) == 1 or len(value) > 2:
                found["outliers"].extend(value)
            elif len(value) == 2 and value[0] == value[1]:
                if first <= value[0] <= third:
                    found["median"] = value[0]
            elif len(value) == 2 and max(value) == first:
                found["min"] = min(value)
            elif len(value) == 2 and min(value) == third:
                found["max"] = max(value)
        return found


def _scales(axes: Any) -> Chart:
    scales: Chart = {}
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        labels = [label.get_text() for label in axis.get_ticklabels()]
        is_date = _is_date(axis)
        ticks = [_date(tick) if is_date else float(tick) for tick in axis.get_ticklocs()]
        scale = "datetime" if is_date else axis.get_scale()
        numbered = list(enumerate(zip(ticks, labels)))
        if scale == "linear" and numbered and all(tick == at and label != str(at) for at, (tick, label) in numbered):
            scale = "categorical"
        scales.update({f"{name}_ticks": ticks, f"{name}_tick_labels": labels, f"{name}_scale": scale})
    return scales


def _is_date(axis: Any) -> bool:
    converter = axis.get_converter() if hasattr(axis, "get_converter") else axis.converter
    return "Date" in type(converter).__name__


def _date(tick: Any) -> str:
    from matplotlib import dates

    return str(dates.num2date(tick).isoformat())


def _point(value: Any) -> Any:
    if getattr(getattr(value, "dtype", None), "kind", "") == "M":
        return str(value.astype("datetime64[s]"))
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "item"):
        value = value.item()
    return value if isinstance(value, (str, int, float)) else str(value)


def _named(label: Any, prefix: str, word: str) -> str:
    text = str(label)
    number = text.removeprefix(prefix)
    return f"{word} {number}" if number != text else text


def _is_grid(line: Any) -> bool:
    x, y = list(line.get_xdata()), list(line.get_ydata())
    return len(x) == 2 and len(y) == 2 and (x[0] == x[1] or y[0] == y[1])


def _round(number: Any) -> float:
    return float(f"{float(number):.{_DIGITS}g}")


_FILL = {"line": _fill_lines, "scatter": _fill_scatter, "bar": _fill_bars, "box_and_whisker": _fill_boxes}
