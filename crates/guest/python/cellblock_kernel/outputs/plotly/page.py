"""Approximate pictures of Plotly's figures, drawn by matplotlib from their data, because Plotly itself draws in browsers only.

Panels stand where the figure's layout has them. What is not drawn: hovering, buttons, sliders, shapes other than
straight lines, and the figure's template.
"""

from __future__ import annotations

import io
import warnings
from typing import Any

from cellblock_kernel.outputs import style
from cellblock_kernel.outputs.plotly import cells, reading
from cellblock_kernel.outputs.plotly.panel import Along, Panel
from cellblock_kernel.outputs.plotly.words import words

_WIDTH, _HEIGHT, _SIDE = 700, 450, (200, 2000)
_DPI = 100
_TRACES, _PANELS, _POINTS = 200, 100, 500_000
# The part of the picture that panels fill: left, bottom, width, height.
_AREA = (0.09, 0.12, 0.87, 0.76)
_BytesIO = io.BytesIO


class NotDrawn(Exception):
    """The reason why a figure has no picture."""


def draw(spec: dict[str, Any]) -> bytes:
    """Draws a specification with plain lists as PNG."""
    buffer = _BytesIO()
    # Nothing that matplotlib warns of is in the cell's code.
    with warnings.catch_warnings(action="ignore"):
        figure_of(spec).savefig(buffer, format="png", dpi=_DPI, bbox_inches="tight", pad_inches=0.1)
    return buffer.getvalue()


def figure_of(spec: dict[str, Any]) -> Any:
    """Returns a figure of matplotlib that shows what a specification does."""
    traces = [trace for trace in spec.get("data") or [] if isinstance(trace, dict) and trace.get("visible") in (None, True)]
    unknown = sorted({kind for trace in traces if (kind := reading.unknown(trace)) is not None})
    if unknown:
        raise NotDrawn(f"only browsers draw {', '.join(unknown)} traces")
    if not traces:
        raise NotDrawn("it has no visible traces")
    if len(traces) > _TRACES or sum(reading.size(trace) for trace in traces) > _POINTS:
        raise NotDrawn(f"it has more than {_TRACES} traces or {_POINTS:,} points")
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError:
        raise NotDrawn("this image has no matplotlib to draw it") from None
    layout = spec.get("layout") or {}
    own = {key: value for key, value in matplotlib.rcParamsOrig.items() if not key.startswith("backend")}
    with matplotlib.rc_context({**own, "axes.axisbelow": True}):
        figure = matplotlib.figure.Figure(figsize=(_side(layout, "width", _WIDTH), _side(layout, "height", _HEIGHT)), dpi=_DPI)
        try:
            _Page(figure, layout, traces).draw()
            style.finish(figure)
        except (MemoryError, NotDrawn):
            raise
        except Exception as error:
            raise NotDrawn(f"its data could not be read: {type(error).__name__}") from None
    return figure


def _side(layout: dict[str, Any], key: str, default: int) -> float:
    given = layout.get(key)
    return min(max(given if isinstance(given, (int, float)) else default, _SIDE[0]), _SIDE[1]) / _DPI


class _Page:
    """A figure while it is drawn: its panels by the names of their axes."""

    def __init__(self, figure: Any, layout: dict[str, Any], traces: list[dict[str, Any]]) -> None:
        self._figure = figure
        self._layout = layout
        self._traces = traces
        self._panels: dict[tuple[str, str], Panel] = {}

    def draw(self) -> None:
        """Draws all panels and their surroundings."""
        for number, trace in enumerate(self._traces):
            if trace.get("type") == "pie":
                cells.draw_pie(self._place(trace.get("domain") or {}), trace)
            else:
                self._panel(trace).traces.append((number, trace))
        if len(self._panels) > _PANELS:
            raise NotDrawn(f"it has more than {_PANELS} panels")
        self._learn()
        for panel in self._panels.values():
            panel.draw()
        self._match()
        self._lines()
        self._texts()
        self._legend()

    def _axis(self, name: str) -> dict[str, Any]:
        found = self._layout.get(f"{name[0]}axis{name[1:]}")
        return found if isinstance(found, dict) else {}

    def _place(self, domain: dict[str, Any]) -> Any:
        """Adds axes in a part of the area for panels."""
        (x0, x1), (y0, y1) = (domain.get("x") or (0, 1)), (domain.get("y") or (0, 1))
        left, bottom, width, height = _AREA
        sides = max(x1 - x0, 0.01) * width, max(y1 - y0, 0.01) * height
        return self._figure.add_axes((left + x0 * width, bottom + y0 * height, *sides))

    def _panel(self, trace: dict[str, Any]) -> Panel:
        names = str(trace.get("xaxis") or "x"), str(trace.get("yaxis") or "y")
        if names not in self._panels:
            x, y = self._axis(names[0]), self._axis(names[1])
            under = (x.get("overlaying") or names[0], y.get("overlaying") or names[1])
            base = self._panels.get(under) if under != names else None
            if base is None:
                axes = self._place({"x": x.get("domain"), "y": y.get("domain")})
            else:
                axes = base.axes.twinx() if "overlaying" in y else base.axes.twiny()
                # Lines stand above bars, whatever their axes.
                if trace.get("type") in ("bar", "histogram"):
                    base.axes.set_zorder(axes.get_zorder() + 1)
                    base.axes.patch.set_visible(False)
            self._panels[names] = Panel(axes, self._layout, x, y)
        return self._panels[names]

    def _matching(self) -> list[list[tuple[Along, str, Panel]]]:
        """Returns the axes by what they have in common: their name, or one that they match."""
        groups: dict[tuple[str, str], list[tuple[Along, str, Panel]]] = {}
        for names, panel in self._panels.items():
            for along, name in ((panel.x, names[0]), (panel.y, names[1])):
                groups.setdefault((name[0], str(along.layout.get("matches") or name)), []).append((along, name[0], panel))
        return list(groups.values())

    def _learn(self) -> None:
        for group in self._matching():
            traces = [(trace, key) for _, key, panel in group for _, trace in panel.traces]
            values = [value for trace, key in traces for value in reading.positions(trace, key)]
            for along, _, _ in group:
                along.learn(values)

    def _match(self) -> None:
        """Gives axes that match the same range."""
        for group in self._matching():
            if len(group) > 1:
                ends = [along.limits() for along, _, _ in group]
                for along, _, _ in group:
                    along.set_limits(min(min(pair) for pair in ends), max(max(pair) for pair in ends))

    def _lines(self) -> None:
        """Draws lines across whole panels, as `add_hline` and `add_vline` make them."""
        for shape in self._layout.get("shapes") or []:
            if not isinstance(shape, dict) or shape.get("type") != "line":
                continue
            color = reading.color_of((shape.get("line") or {}).get("color")) or "#333f48"
            line = {"color": color, "linestyle": reading.dash_of(shape.get("line")), "linewidth": 1.2}
            for names, panel in self._panels.items():
                across = shape.get("yref") == names[1] and shape.get("y0") == shape.get("y1")
                along = shape.get("xref") == names[0] and shape.get("x0") == shape.get("x1")
                if across and str(shape.get("xref", "")).endswith("domain"):
                    panel.axes.axhline(panel.y.place(shape["y0"]), **line)
                elif along and str(shape.get("yref", "")).endswith("domain"):
                    panel.axes.axvline(panel.x.place(shape["x0"]), **line)

    def _texts(self) -> None:
        """Writes the title, and texts that are placed on the page, such as titles of panels."""
        left, bottom, width, height = _AREA
        title = words(self._layout.get("title"))
        if title:
            self._figure.text(left, bottom + height + 0.08, title, fontsize=12, fontweight="bold", ha="left", va="bottom")
        for note in self._layout.get("annotations") or []:
            if isinstance(note, dict) and note.get("xref") == "paper" and note.get("yref") == "paper":
                places = {"left": "left", "center": "center", "right": "right"}
                x, y = left + float(note.get("x") or 0) * width, bottom + float(note.get("y") or 0) * height + 0.01
                ha = places.get(str(note.get("xanchor")), "center")
                self._figure.text(x, y, words(note), fontsize=9, ha=ha, va="bottom", rotation=-float(note.get("textangle") or 0))

    def _legend(self) -> None:
        """Lists what has a name, once each, above the panels."""
        named: dict[str, Any] = {}
        for panel in self._panels.values():
            for handle, label in panel.named:
                named.setdefault(label, handle)
        shown = self._layout.get("showlegend")
        if named and (shown is True or (shown is None and len(named) > 1)):
            left, bottom = _AREA[:2]
            columns = max(1, min(len(named), int(90 / (max(map(len, named)) + 6))))
            title = words((self._layout.get("legend") or {}).get("title")) or None
            place = {"loc": "upper left", "bbox_to_anchor": (left, bottom - 0.11), "ncols": columns, "alignment": "left"}
            self._figure.legend(list(named.values()), list(named), frameon=False, fontsize=9, title=title, **place)
