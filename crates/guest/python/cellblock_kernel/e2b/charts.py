"""Figures of matplotlib as data, in the form of E2B's charts."""

from __future__ import annotations

import re
import sys
from typing import Any

from cellblock_kernel.outputs import artists, drawn
from cellblock_kernel.outputs.positions import converter_name, frequency, shown, spelled

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
    kinds = [_class(artist) for artist in _drawn(axes)]
    if "Line2D" in kinds:
        # Bands below lines, and areas with an edge.
        kinds = [kind for kind in kinds if kind != "PolyCollection"]
    if any(kind == "Box" for kind in kinds):
        return "box_and_whisker" if all(kind in ("Box", "Line2D") for kind in kinds) else "unknown"
    if all(kind in ("Line2D", "PolyCollection") for kind in kinds):
        return "line"
    rest = {_class(artist) for artist in _drawn(axes) if not (_class(artist) == "Line2D" and _is_grid(artist))}
    if len(rest) != 1:
        return "unknown"
    return {"PathCollection": "scatter", "Wedge": "pie", "Rectangle": "bar"}.get(rest.pop(), "unknown")


def _drawn(axes: Any) -> list[Any]:
    """Returns what shows data: not error bars, texts, or the empty lines of a legend."""
    parts, whiskers = artists.Parts(axes), artists.whiskers_of(axes)
    return [
        artist
        for artist in axes._children
        if _class(artist) != "Text"
        and id(artist) not in parts.hidden
        and id(artist) not in whiskers
        and not (_class(artist) == "Line2D" and not len(artist.get_xdata()) and drawn.numbers_of(artist) is None)
        and not (_class(artist) == "Rectangle" and not artist.get_width() and not artist.get_height())
    ]


def _class(artist: Any) -> str:
    # Subclasses of these count as they do.
    if (drawn.numbers_of(artist) or {}).get("kind") == "box":
        return "Box"
    known = ("Text", "Line2D", "PathCollection", "Wedge", "Rectangle", "PolyCollection")
    kind = next((base.__name__ for base in type(artist).__mro__ if base.__name__ in known), type(artist).__name__)
    return "Raster" if kind == "PolyCollection" and artist.get_array() is not None else kind


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
    parts, whiskers = artists.Parts(axes), artists.whiskers_of(axes)
    readings = list(artists.lines(axes, parts, whiskers)) or list(artists.areas(axes, parts))
    is_reading = {id(line) for line in axes.get_lines() if _is_grid(line)}
    for reading in readings:
        if id(reading["artist"]) not in is_reading:
            label = reading["label"] or _named(reading["artist"].get_label(), "_child", "Line")
            x, y = _shown(axes.xaxis, reading["x"]), _shown(axes.yaxis, reading["y"])
            chart["elements"].append({"label": label, "points": [[_point(one), _point(other)] for one, other in zip(x, y)]})


def _fill_scatter(axes: Any, chart: Chart) -> None:
    chart.update(_scales(axes))
    parts = artists.Parts(axes)
    for collection in axes.collections:
        places = collection.get_offsets()
        x, y = _shown(axes.xaxis, list(places[:, 0])), _shown(axes.yaxis, list(places[:, 1]))
        label = parts.name(collection, collection.get_label()) or collection.get_label()
        chart["elements"].append({"label": label, "points": [[_point(one), _point(other)] for one, other in zip(x, y)]})


def _fill_bars(axes: Any, chart: Chart) -> None:
    parts = artists.Parts(axes)
    for container in axes.containers:
        bars = list(getattr(container, "patches", ()))
        if not bars:
            continue
        group = parts.name(bars[0], artists.label_of_bars(container)) or _named(container.get_label(), "_container", "Group")
        is_lying = container.orientation == "horizontal"
        places = [bar.get_y() + bar.get_height() / 2 if is_lying else bar.get_x() + bar.get_width() / 2 for bar in bars]
        labels = spelled(shown(axes.yaxis if is_lying else axes.xaxis, places, near=True))
        for label, bar in zip(labels, bars):
            name = label if isinstance(label, str) else f"{float(label):g}"
            chart["elements"].append(
                {"label": name, "group": group, "value": float(bar.get_width() if is_lying else bar.get_height())}
            )
    if any(getattr(container, "orientation", "vertical") == "horizontal" for container in axes.containers):
        _turn(chart)


def _fill_boxes(axes: Any, chart: Chart) -> None:
    seen: set[int] = set()
    for artist in (*axes.patches, *axes.lines):
        numbers = drawn.numbers_of(artist)
        if numbers is None or id(numbers) in seen:
            continue
        seen.add(id(numbers))
        if numbers["lying"] and len(seen) == 1:
            _turn(chart)
        names = shown(axes.yaxis if numbers["lying"] else axes.xaxis, numbers["places"], near=True)
        keys = {"min": "whislo", "first_quartile": "q1", "median": "med", "third_quartile": "q3", "max": "whishi"}
        for name, box in zip(names, numbers["boxes"]):
            summary: Chart = {"label": name if isinstance(name, str) else f"{float(name):g}"}
            summary.update({key: _round(box[source]) for key, source in keys.items()})
            summary["outliers"] = [_round(flier) for flier in box.get("fliers", ())]
            chart["elements"].append(summary)


def _shown(axis: Any, values: list[Any]) -> list[Any]:
    """Returns dates as such, in points: a period starts with one."""
    if not values or (not isinstance(values[0], (int, float)) and not hasattr(values[0], "item")):
        return values
    freq = frequency(axis)
    if freq is not None:
        pandas: Any = sys.modules["pandas"]
        return [pandas.Period(ordinal=round(float(value)), freq=freq).start_time for value in values]
    if _is_date(axis) and getattr(getattr(values[0], "dtype", None), "kind", "") != "M":
        dates: Any = sys.modules["matplotlib.dates"]
        return [moment.replace(tzinfo=None) for moment in dates.num2date(values)]
    return values


def _scales(axes: Any) -> Chart:
    scales: Chart = {}
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        labels = [label.get_text() for label in axis.get_ticklabels()]
        is_date = _is_date(axis) or frequency(axis) is not None
        ticks = [_date(axis, tick) if is_date else float(tick) for tick in axis.get_ticklocs()]
        scale = "datetime" if is_date else axis.get_scale()
        numbered = list(enumerate(zip(ticks, labels)))
        if scale == "linear" and numbered and all(tick == at and label != str(at) for at, (tick, label) in numbered):
            scale = "categorical"
        scales.update({f"{name}_ticks": ticks, f"{name}_tick_labels": labels, f"{name}_scale": scale})
    return scales


def _is_date(axis: Any) -> bool:
    return "Date" in converter_name(axis)


def _date(axis: Any, tick: Any) -> str:
    if frequency(axis) is not None:
        return str(_shown(axis, [float(tick)])[0].isoformat())
    dates: Any = sys.modules["matplotlib.dates"]
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
