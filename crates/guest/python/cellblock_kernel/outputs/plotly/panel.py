"""Panels of a figure of Plotly: a pair of axes with the traces on it."""

from __future__ import annotations

import datetime
import re
from typing import Any

from cellblock_kernel.outputs.plotly import bars, cells, lines
from cellblock_kernel.outputs.plotly.reading import positions
from cellblock_kernel.outputs.plotly.words import plain, words

# Maximum number of bars that each have their date below them.
_DATES = 12
_DATE = re.compile(r"\d{4}-\d\d(-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?(Z|[+-]\d\d:?\d\d)?)?")


class Panel:
    """A pair of axes with the traces on it."""

    def __init__(self, axes: Any, page: dict[str, Any], x: dict[str, Any], y: dict[str, Any]) -> None:
        self.axes = axes
        # The layout of the whole figure.
        self.page = page
        self.x, self.y = Along(axes.xaxis, x), Along(axes.yaxis, y)
        self.traces: list[tuple[int, dict[str, Any]]] = []
        self.named: list[tuple[Any, str]] = []

    def draw(self) -> None:
        """Draws the traces, and sets the axes."""
        self._draw()
        for side in ("top", "right"):
            self.axes.spines[side].set_visible(False)
        for key, along in (("x", self.x), ("y", self.y)):
            dated = [trace for _, trace in self.traces if trace.get("type") == "bar" and along.is_date]
            places = [place for trace in dated for place in along.places(positions(trace, key))]
            along.finish(sorted(set(places)))

    def name(self, trace: dict[str, Any], handle: Any) -> None:
        """Lists a trace in the legend, if it has a name."""
        name = words(trace.get("name"))
        if name and trace.get("showlegend") is not False:
            self.named.append((handle, name))

    def _draw(self) -> None:
        of_kind: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        for number, trace in self.traces:
            of_kind.setdefault(str(trace.get("type") or "scatter").removesuffix("gl"), []).append((number, trace))
        for _, trace in of_kind.get("heatmap", []):
            cells.draw_heatmap(self, trace)
        bars.draw_bars(self, of_kind.get("bar", []), str(self.page.get("barmode") or "group"))
        bars.draw_histograms(self, of_kind.get("histogram", []), str(self.page.get("barmode") or "group"))
        bars.draw_boxes(self, of_kind.get("box", []), self.page.get("boxmode") == "group")
        for kind in ("candlestick", "ohlc"):
            for _, trace in of_kind.get(kind, []):
                lines.draw_candles(self, trace)
        scatters = of_kind.get("scatter", [])
        # A stack has all places of its traces; one that has no value there adds nothing.
        stacks: dict[Any, dict[float, float]] = {}
        for _, trace in scatters:
            if trace.get("stackgroup"):
                stacks.setdefault(trace["stackgroup"], {}).update(dict.fromkeys(self.x.places(positions(trace, "x")), 0.0))
        stacks = {group: dict.fromkeys(sorted(stack), 0.0) for group, stack in stacks.items()}
        before = None
        for number, trace in scatters:
            before = lines.draw_scatter(self, number, trace, stacks.get(trace.get("stackgroup")), before)


class Along:
    """One axis: numbers, dates, or names side by side."""

    def __init__(self, axis: Any, layout: dict[str, Any]) -> None:
        self._axis = axis
        self.layout = layout
        self.names: dict[str, int] = {}
        self.is_date = False

    def learn(self, found: list[Any]) -> None:
        """Finds out what the values of all traces are."""
        values = [value for value in found if value is not None]
        kind = self.layout.get("type")
        texts = [value for value in values if isinstance(value, str)]
        are_dates = bool(texts) and len(texts) == len(values) and all(map(_DATE.fullmatch, texts))
        self.is_date = kind in (None, "-", "date") and are_dates
        if kind == "category" or (texts and not self.is_date and kind != "log"):
            present = set(map(str, values))
            ordered = map(str, [*(self.layout.get("categoryarray") or []), *values])
            self.names = {name: number for number, name in enumerate(dict.fromkeys(name for name in ordered if name in present))}

    def place(self, value: Any) -> Any:
        """Returns where a value is on the axis; nowhere if it is missing."""
        if value is None:
            return float("nan")
        if self.names:
            return float(self.names.get(str(value), float("nan")))
        return _number(value) if self.is_date else float(value)

    def places(self, values: Any) -> list[float]:
        """Returns where values are on the axis."""
        return [self.place(value) for value in values]

    def limits(self) -> tuple[float, float]:
        """Returns the ends of the axis."""
        left, right = self._axis.get_view_interval()
        return float(left), float(right)

    def set_limits(self, first: float, last: float) -> None:
        """Sets the ends of the axis, in its direction."""
        ends = (last, first) if self._axis.get_inverted() else (first, last)
        (self._axis.axes.set_xlim if self._axis.axis_name == "x" else self._axis.axes.set_ylim)(*ends)

    def finish(self, dates: list[float]) -> None:
        """Sets names, dates, title, scale and range. A few bars have a date each."""
        axis, layout = self._axis, self.layout
        if self.names:
            axis.set_ticks(list(self.names.values()), [plain(name) for name in self.names])
            self.set_limits(-0.5, len(self.names) - 0.5)
        elif self.is_date:
            axis.axis_date()
            if 0 < len(dates) <= _DATES:
                axis.set_ticks(dates)
        elif layout.get("type") == "log":
            (axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale)("log")
        axis.set_label_text(words(layout.get("title")))
        if layout.get("showticklabels") is False:
            axis.set_tick_params(which="both", labelleft=False, labelbottom=False, left=False, bottom=False)
        given = layout.get("range")
        if isinstance(given, list) and len(given) == 2 and None not in given and layout.get("autorange") is None:
            first, last = given if self.names else self.places(given)
            if layout.get("type") == "log":
                first, last = 10**first, 10**last
            axis.set_inverted(first > last)
            self.set_limits(min(first, last), max(first, last))
        elif layout.get("autorange") == "reversed":
            axis.set_inverted(True)


def _number(text: Any) -> float:
    from matplotlib.dates import date2num

    text = str(text)
    moment = datetime.datetime.fromisoformat(f"{text}-01" if len(text) == 7 else text)
    if moment.tzinfo is not None:
        moment = moment.replace(tzinfo=None)
    return float(date2num(moment))
