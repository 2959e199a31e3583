"""The data of matplotlib's artists: what was drawn, and not the lines and polygons that it was drawn with.

Error bars belong to their line or bars, a box plot and a pie are one series each, bins have their edges. A series
without a label takes the one that the legend shows for its color, as seaborn labels only legends.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any

from cellblock_kernel.outputs import coverage, drawn
from cellblock_kernel.outputs.positions import Values, shown

Reading = dict[str, Any]

# Place, ends, and whether it is upright, of an error bar, by the identity of its line.
Whiskers = dict[int, tuple[float, float, float, bool]]

_AREAS = ("PolyCollection", "FillBetweenPolyCollection")
_CELLS = 1000
_NOTHING = ("None", "none", "", " ", None)


def read(axes: Any) -> Iterator[Reading]:
    """Returns the series of a panel in the order of their kinds; those that fail are left out."""
    parts = Parts(axes)
    for kind in (_lines, _bars, _points, _areas, _grids, _steps, _whole, _others):
        readings = kind(axes, parts)
        while True:
            try:
                yield next(readings)
            except StopIteration:
                break
            except Exception:
                break


class Parts:
    """Artists of a panel that are parts of something else, and the names in its legend."""

    def __init__(self, axes: Any) -> None:
        self.hidden: set[int] = set()
        self.errors: dict[int, Any] = {}
        self.names: dict[Any, str] = {}
        for container in axes.containers:
            kind = type(container).__name__
            if kind == "ErrorbarContainer":
                line, caps, bars = container.lines
                self.hidden.update(id(part) for part in (*caps, *bars))
                if line is not None:
                    self.errors[id(line)] = container
            elif kind == "StemContainer":
                self.hidden.update(id(part) for part in (container.markerline, container.stemlines, container.baseline))
        self._read_legend(axes)

    def _read_legend(self, axes: Any) -> None:
        legend = axes.get_legend()
        for handle, text in zip(getattr(legend, "legend_handles", ()), legend.get_texts() if legend else ()):
            self.names.setdefault(_color(handle), text.get_text())
        for area in axes.collections:
            # pandas names areas, and not the lines along them.
            if type(area).__name__ in _AREAS and not str(area.get_label()).startswith("_"):
                self.names.setdefault(_color(area), str(area.get_label()))

    def name(self, artist: Any, own: Any) -> str:
        """Returns a series' label, if needed that of its color in the legend."""
        text = str(own or "")
        if text and not text.startswith("_"):
            return text
        named: str = self.names.get(_color(artist), "")
        return "" if named.startswith("_") else named


def _color(artist: Any) -> tuple[float, ...] | None:
    colors: Any = sys.modules["matplotlib.colors"]
    try:
        for name in ("get_facecolor", "get_color"):
            get = getattr(artist, name, None)
            if get is None:
                continue
            color = get()
            color = color[0] if getattr(color, "ndim", 1) == 2 else color
            return tuple(round(float(part), 3) for part in colors.to_rgb(color))
    except Exception:
        return None
    return None


def _series(kind: str, label: str, x: Values, y: Values, **more: Any) -> Reading:
    return {"kind": kind, "label": label, "x": x, "y": y, **more}


def _lines(axes: Any, parts: Parts) -> Iterator[Reading]:
    for reading in lines(axes, parts, whiskers_of(axes)):
        line = reading.pop("artist")
        x, y = shown(axes.xaxis, reading["x"]), shown(axes.yaxis, reading["y"])
        share = coverage.of_line(axes, line)
        yield {**reading, "x": x, "y": y, **({} if share is None else {"coverage": share})}
    for container in axes.containers:
        if type(container).__name__ == "StemContainer":
            line = container.markerline
            x, y = list(line.get_xdata(orig=True)), list(line.get_ydata(orig=True))
            yield _series("scatter", parts.name(line, container.get_label()), shown(axes.xaxis, x), shown(axes.yaxis, y))


def lines(axes: Any, parts: Parts, whiskers: Whiskers) -> Iterator[Reading]:
    """Returns lines with their artists, at the positions that they were drawn at."""
    for line in axes.lines:
        if id(line) in parts.hidden or id(line) in whiskers or drawn.numbers_of(line) is not None:
            continue
        x, y = list(line.get_xdata(orig=True)), list(line.get_ydata(orig=True))
        if not x or not y:
            continue
        along, across = line.get_transform().contains_branch_seperately(axes.transData)
        # `axhline` and `axvline` cross the whole panel.
        x, y = x if along else list(axes.get_xlim()), y if across else list(axes.get_ylim())
        container = parts.errors.get(id(line))
        has_line = line.get_linestyle() not in _NOTHING or line.get_marker() in _NOTHING
        label = parts.name(line, line.get_label() if container is None else container.get_label())
        reading = _series("line" if has_line or container is None else "scatter", label, x, y, artist=line)
        if container is not None:
            reading["columns"] = _ends(container)
        elif whiskers:
            places = {round(float(place), 9): number for number, place in enumerate(line.get_xdata(orig=False))}
            ends = _attached(whiskers, places, len(x), line)
            reading.update({"columns": ends} if ends else {})
        yield reading


def _ends(container: Any) -> dict[str, Values]:
    """Returns the ends of error bars, by the axis along which they are."""
    ends: dict[str, Values] = {}
    collections = list(container.lines[2])
    for has, names, axis in ((container.has_xerr, ("x_low", "x_high"), 0), (container.has_yerr, ("low", "high"), 1)):
        if has and collections:
            segments = [segment[:, axis] for segment in collections.pop(0).get_segments()]
            ends[names[0]] = [min(segment, default=None) for segment in segments]
            ends[names[1]] = [max(segment, default=None) for segment in segments]
    return ends


def whiskers_of(axes: Any) -> Whiskers:
    """Returns lines without a name that run along one axis through a bar or a point: the error bars of seaborn."""
    places = {True: set[float](), False: set[float]()}
    for container in axes.containers:
        for bar in getattr(container, "patches", ()) if type(container).__name__ == "BarContainer" else ():
            places[True].add(round(bar.get_x() + bar.get_width() / 2, 6))
            places[False].add(round(bar.get_y() + bar.get_height() / 2, 6))
    named = [line for line in axes.lines if len(line.get_xdata()) > 2 or line.get_marker() not in _NOTHING]
    for line in named:
        places[True].update(round(float(x), 6) for x in line.get_xdata(orig=False))
        places[False].update(round(float(y), 6) for y in line.get_ydata(orig=False))
    found: Whiskers = {}
    for line in axes.lines:
        if not str(line.get_label()).startswith("_") or line.get_marker() not in _NOTHING:
            continue
        along, across = line.get_transform().contains_branch_seperately(axes.transData)
        x, y = ([float(one) for one in values] for values in (line.get_xdata(orig=False), line.get_ydata(orig=False)))
        if not (along and across) or not 2 <= len(x) <= 8:
            continue
        for upright, place, ends in ((True, x, y), (False, y, x)):
            middle = (min(place) + max(place)) / 2
            is_straight = place[0] == place[-1] or (len(place) > 2 and place.count(middle) >= 2)
            if is_straight and round(middle, 6) in places[upright] and len(set(place)) <= 3:
                found[id(line)] = (middle, min(ends), max(ends), upright)
                break
    return found


def _attached(whiskers: Whiskers, numbers: dict[float, int], count: int, line: Any = None) -> dict[str, Values]:
    """Returns the ends of error bars at these places."""
    low: Values = [None] * count
    high: Values = [None] * count
    own = id(line) if line is not None else None
    for key, (place, least, most, upright) in whiskers.items():
        number = numbers.get(round(place, 9))
        if number is None or key == own or not upright or not math.isfinite(least):
            continue
        if line is None or least <= float(line.get_ydata(orig=False)[number]) <= most:
            low[number], high[number] = least, most
    return {"low": low, "high": high} if any(one is not None for one in low) else {}


def _bars(axes: Any, parts: Parts) -> Iterator[Reading]:
    whiskers = whiskers_of(axes)
    for container in axes.containers:
        bars = list(container.patches) if type(container).__name__ == "BarContainer" else []
        if not bars:
            continue
        label = parts.name(bars[0], label_of_bars(container))
        lying = container.orientation == "horizontal"
        starts = [bar.get_y() if lying else bar.get_x() for bar in bars]
        widths = [bar.get_height() if lying else bar.get_width() for bar in bars]
        sizes = [bar.get_width() if lying else bar.get_height() for bar in bars]
        places = [start + width / 2 for start, width in zip(starts, widths)]
        names = shown(axes.yaxis if lying else axes.xaxis, places, near=True)
        is_hist = _adjacent(starts, widths)
        reading = _series("hist" if is_hist else "bar", label, *((sizes, names) if lying else (names, sizes)))
        columns: dict[str, Values] = {}
        if is_hist and not lying:
            columns = {"from": starts, "to": [start + width for start, width in zip(starts, widths)]}
            columns = {name: shown(axes.xaxis, edges) for name, edges in columns.items()}
        if container.errorbar is not None:
            columns.update(_ends(container.errorbar))
        else:
            columns.update(_attached(whiskers, {round(place, 9): number for number, place in enumerate(places)}, len(bars)))
        yield {**reading, "columns": columns} if columns else reading


def label_of_bars(container: Any) -> str:
    """Returns the label of bars; a histogram has it at its first bar."""
    own = str(container.get_label())
    return str(container.patches[0].get_label()) if own.startswith("_") else own


def _adjacent(starts: Values, widths: Values) -> bool:
    """Returns whether bars touch, as the bins of a histogram do."""
    if len(starts) < 2:
        return False
    width = max(abs(one) for one in widths) or 1.0
    return all(abs(start + size - following) < 1e-6 * width for start, size, following in zip(starts, widths, starts[1:]))


def _points(axes: Any, parts: Parts) -> Iterator[Reading]:
    for collection in axes.collections:
        if type(collection).__name__ not in ("PathCollection", "Path3DCollection"):
            continue
        places = collection.get_offsets()
        if not len(places):
            continue
        x, y = shown(axes.xaxis, list(places[:, 0])), shown(axes.yaxis, list(places[:, 1]))
        values = collection.get_array()
        columns = {"columns": {"color": list(values)}} if values is not None and len(values) == len(x) else {}
        colors = collection.get_facecolor()
        if not columns and len(parts.names) > 1 and len(colors) == len(x):
            names = [parts.names.get(tuple(round(float(part), 3) for part in color[:3])) for color in colors]
            if all(names):
                for name in dict.fromkeys(names):
                    picked = [number for number, other in enumerate(names) if other == name]
                    yield _series("scatter", str(name), [x[number] for number in picked], [y[number] for number in picked])
                continue
        yield _series("scatter", parts.name(collection, collection.get_label()), x, y, **columns)


def _areas(axes: Any, parts: Parts) -> Iterator[Reading]:
    for reading in areas(axes, parts):
        del reading["artist"]
        yield {**reading, "x": shown(axes.xaxis, reading["x"]), "y": shown(axes.yaxis, reading["y"])}


def areas(axes: Any, parts: Parts) -> Iterator[Reading]:
    """Returns areas with their artists, at the positions that they were drawn at: one edge, and the other unless it is zero."""
    for collection in axes.collections:
        kind = type(collection).__name__
        if kind not in _AREAS or collection.get_array() is not None:
            continue
        place, other = (1, 0) if getattr(collection, "t_direction", "x") == "y" else (0, 1)
        along: Values = []
        first: Values = []
        second: Values = []
        for path in collection.get_paths():
            # A start, one edge, an end, the other edge backwards, and the start again.
            corners = path.vertices
            count = (len(corners) - 3) // 2
            along.extend(corners[1 : 1 + count, place])
            first.extend(corners[1 : 1 + count, other])
            second.extend(corners[2 + count : 2 + 2 * count, other][::-1])
        if not along:
            continue
        label = parts.name(collection, collection.get_label())
        if any(first) and any(second):
            upper, lower = (first, second) if sum(first) >= sum(second) else (second, first)
        else:
            upper, lower = (first, []) if any(first) else (second, [])
        x, y = (upper, along) if place else (along, upper)
        yield _series("area", label, x, y, artist=collection, **({"columns": {"low": lower}} if lower else {}))


def _grids(axes: Any, parts: Parts) -> Iterator[Reading]:
    for image in axes.images:
        values = image.get_array()
        if len(values.shape) != 2:
            yield _series("image", parts.name(None, image.get_label()), [], [], points=int(values.shape[0] * values.shape[1]))
            continue
        left, right, bottom, top = image.get_extent()
        rows, columns = values.shape
        if image.origin == "upper":
            bottom, top = top, bottom
        x = [left + (number + 0.5) * (right - left) / columns for number in range(columns)]
        y = [bottom + (number + 0.5) * (top - bottom) / rows for number in range(rows)]
        yield _grid(axes, parts.name(None, image.get_label()), x, y, values)
    for mesh in axes.collections:
        kind = type(mesh).__name__
        if kind in ("QuadMesh", "PolyQuadMesh"):
            corners = mesh._coordinates
            values = mesh.get_array()
            rows, columns = corners.shape[0] - 1, corners.shape[1] - 1
            if values is None or values.size != rows * columns:
                continue
            x = [(left + right) / 2 for left, right in zip(corners[0, :-1, 0], corners[0, 1:, 0])]
            y = [(low + high) / 2 for low, high in zip(corners[:-1, 0, 1], corners[1:, 0, 1])]
            yield _grid(axes, parts.name(None, mesh.get_label()), x, y, values.reshape(rows, columns))
        elif kind == "PolyCollection" and mesh.get_array() is not None:
            places = mesh.get_offsets()
            counts = list(mesh.get_array())
            if len(places) == len(counts):
                yield _series("heatmap", "", list(places[:, 0]), list(places[:, 1]), columns={"z": counts})


def _grid(axes: Any, label: str, x: Values, y: Values, values: Any) -> Reading:
    """Returns the cells of a grid row by row, evenly thinned."""
    points = len(x) * len(y)
    shrink = max(1.0, math.sqrt(points / _CELLS))
    rows, columns = _picked(len(y), max(1, int(len(y) / shrink))), _picked(len(x), max(1, int(len(x) / shrink)))
    names, lines = shown(axes.xaxis, x, near=True), shown(axes.yaxis, y, near=True)
    cells = [(names[column], lines[row], values[row, column]) for row in rows for column in columns][:_CELLS]
    along, across, inside = (list(one) for one in zip(*cells))
    return _series("heatmap", label, along, across, columns={"z": inside}, points=points)


def _picked(count: int, wanted: int) -> list[int]:
    if wanted <= 1 or wanted >= count:
        return list(range(count)) if wanted >= count else [0]
    return [round(number * (count - 1) / (wanted - 1)) for number in range(wanted)]


def _steps(axes: Any, parts: Parts) -> Iterator[Reading]:
    """Returns histograms that are drawn as one outline."""
    for patch in axes.patches:
        kind = type(patch).__name__
        if kind == "StepPatch":
            heights, edges, _ = patch.get_data()
            heights, edges = list(heights), list(edges)
        elif kind == "Polygon":
            corners = patch.get_xy()
            top = corners[: 1 + int(corners[:, 0].argmax()) + 1]
            if len(top) % 2 == 0:
                top = top[:-1]
            edges, heights = list(top[0::2, 0]), list(top[1::2, 1])
            if len(edges) < 2 or list(top[1::2, 0]) != edges[:-1] or any(a >= b for a, b in zip(edges, edges[1:])):
                continue
        else:
            continue
        middles = [(left + right) / 2 for left, right in zip(edges, edges[1:])]
        columns = {"from": shown(axes.xaxis, edges[:-1]), "to": shown(axes.xaxis, edges[1:])}
        yield _series("hist", parts.name(patch, patch.get_label()), shown(axes.xaxis, middles), heights, columns=columns)


def _whole(axes: Any, parts: Parts) -> Iterator[Reading]:
    """Returns box plots and pies."""
    seen: set[int] = set()
    for artist in (*axes.lines, *axes.patches):
        numbers = drawn.numbers_of(artist)
        if numbers is None or id(numbers) in seen:
            continue
        seen.add(id(numbers))
        if numbers["kind"] == "pie":
            yield _series("pie", "", numbers["labels"], numbers["values"])
            continue
        boxes, lying = numbers["boxes"], numbers["lying"]
        names = shown(axes.yaxis if lying else axes.xaxis, numbers["places"], near=True)
        label = numbers["label"]
        label = parts.name(numbers["face"], label if isinstance(label, str) else None)
        medians = [box.get("med") for box in boxes]
        parted = {"low": "whislo", "first_quartile": "q1", "third_quartile": "q3", "high": "whishi"}
        columns = {name: [box.get(key) for box in boxes] for name, key in parted.items()}
        columns["outliers"] = [len(box.get("fliers", ())) for box in boxes]
        yield _series("box", label, *((medians, names) if lying else (names, medians)), columns=columns)


def _others(axes: Any, parts: Parts) -> Iterator[Reading]:
    """Returns drawings whose data is not read, so that a reader knows of them."""
    for collection in axes.collections:
        kind = type(collection).__name__
        if kind in ("QuadContourSet", "TriContourSet", "Quiver", "Barbs", "TriMesh", "Poly3DCollection", "Line3DCollection"):
            yield _series("other", parts.name(None, collection.get_label()), [], [])
