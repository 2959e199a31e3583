"""Lines, points, areas and candles."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cellblock_kernel.outputs.plotly import cells
from cellblock_kernel.outputs.plotly.reading import NOTHING, color_of, color_of_trace, dash_of, errors, numeric, positions
from cellblock_kernel.outputs.plotly.words import plain

if TYPE_CHECKING:
    from cellblock_kernel.outputs.plotly.panel import Panel

_STEPS = {"hv": "steps-post", "vh": "steps-pre", "hvh": "steps-mid", "vhv": "steps-mid"}
_MARKERS = {"square": "s", "diamond": "D", "cross": "P", "x": "X", "triangle-up": "^", "triangle-down": "v", "star": "*"}
_SHARE = 0.8
_TEXTS = 500


def draw_scatter(panel: Panel, number: int, trace: dict[str, Any], stack: Any, before: Any) -> Any:
    """Draws a line, points, an area or texts, and returns its places for an area between it and the next."""
    axes, color = panel.axes, color_of_trace(number, trace)
    x, y = panel.x.places(positions(trace, "x")), panel.y.places(positions(trace, "y"))
    count = min(len(x), len(y))
    x, y = x[:count], y[:count]
    mode = str(trace.get("mode") or ("lines+markers" if count < 20 and not trace.get("stackgroup") else "lines"))
    opacity = numeric(trace, "opacity", 1)
    fill, low = trace.get("fill"), [0.0] * count
    if stack is not None:
        own = {place: value for place, value in zip(x, y) if not math.isnan(value)}
        x, low = list(stack), list(stack.values())
        y = [base + own.get(place, 0.0) for place, base in stack.items()]
        stack.update(zip(x, y))
        fill = "stack"
    if fill == "tonexty" and before is not None:
        low = _at(before, x)
    if fill not in (None, "none"):
        axes.fill_between(x, low, y, color=color_of(trace.get("fillcolor")) or color, alpha=0.35, linewidth=0)
    handle: Any = None
    if "lines" in mode:
        line = trace.get("line") or {}
        width = numeric(line, "width", 2)
        steps = _STEPS.get(str(line.get("shape")), "default")
        (handle,) = axes.plot(x, y, color=color, linewidth=0.75 * width, linestyle=dash_of(line), drawstyle=steps, alpha=opacity)
    if "markers" in mode:
        dots = _dots(panel, trace, x, y, color, opacity)
        handle = handle or dots
    if "text" in mode and isinstance(trace.get("text"), list):
        for place, height, text in list(zip(x, y, trace["text"]))[:_TEXTS]:
            if not math.isnan(height):
                axes.annotate(plain(text), (place, height), ha="center", va="bottom", fontsize=8)
    for key, name in (("error_y", "yerr"), ("error_x", "xerr")):
        ends = errors(trace.get(key), y if key == "error_y" else x)
        if ends is not None:
            axes.errorbar(x, y, fmt="none", ecolor=color, elinewidth=1, capsize=2, **{name: ends})
    if handle is not None:
        panel.name(trace, handle)
    return x, y


def _at(before: Any, x: list[float]) -> list[float]:
    known = dict(zip(*before))
    return [known.get(place, NOTHING) for place in x]


def _dots(panel: Panel, trace: dict[str, Any], x: Any, y: Any, color: Any, opacity: Any) -> Any:
    marker = trace.get("marker") or {}
    given, sizes = marker.get("color"), marker.get("size")
    reference = marker.get("sizeref") or 1
    if isinstance(sizes, list):
        pixels = [float(one or 0) / reference for one in sizes]
        pixels = [math.sqrt(one) for one in pixels] if marker.get("sizemode") == "area" else pixels
        area: Any = [(0.75 * one) ** 2 for one in pixels]
    else:
        area = (0.75 * numeric(marker, "size", 6)) ** 2
    options: dict[str, Any] = {"s": area, "marker": _MARKERS.get(str(marker.get("symbol")), "o"), "linewidths": 0}
    options["alpha"] = numeric(marker, "opacity", opacity)
    if isinstance(given, list) and given and all(one is None or isinstance(one, (int, float)) for one in given):
        values = [NOTHING if one is None else one for one in given]
        drawn = panel.axes.scatter(x, y, c=values, **cells.scale(marker, panel.page), **options)
        cells.bar_of_colors(panel, drawn, marker)
        return drawn
    colors = [color_of(one) or color for one in given] if isinstance(given, list) else [color]
    return panel.axes.scatter(x, y, c=colors if len(colors) == len(x) else color, **options)


def draw_candles(panel: Panel, trace: dict[str, Any]) -> None:
    """Draws candles."""
    x = panel.x.places(positions(trace, "x"))
    prices = [trace.get(key) or [] for key in ("open", "high", "low", "close")]
    parts = [[NOTHING if value is None else float(value) for value in values] for values in prices]
    step = min((right - left for left, right in zip(sorted(x), sorted(x)[1:]) if right > left), default=1.0) * _SHARE
    rising = color_of(((trace.get("increasing") or {}).get("line") or {}).get("color")) or "#2a9d8f"
    falling = color_of(((trace.get("decreasing") or {}).get("line") or {}).get("color")) or "#bd1f01"
    candles = list(zip(x, *parts))
    colors = [rising if close >= start else falling for _, start, _, _, close in candles]
    x, start, high, low, close = map(list, zip(*candles)) if candles else ([], [], [], [], [])
    panel.axes.vlines(x, low, high, colors=colors, linewidth=1)
    heights = [abs(last - first) for first, last in zip(start, close)]
    panel.axes.bar(x, heights, step, bottom=[min(pair) for pair in zip(start, close)], color=colors)
