"""Heatmaps, scales of colors, and pies."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cellblock_kernel.outputs.plotly.reading import COLORS, NOTHING, color_of, numeric, positions
from cellblock_kernel.outputs.plotly.words import plain, words

if TYPE_CHECKING:
    from cellblock_kernel.outputs.plotly.panel import Panel

_WRITTEN_CELLS = 400


def draw_heatmap(panel: Panel, trace: dict[str, Any]) -> None:
    """Draws the cells of a grid, with their values where the trace has them written."""
    import numpy

    cells = numpy.array([[NOTHING if value is None else float(value) for value in row] for row in trace["z"]], dtype=float)
    x, y = panel.x.places(positions(trace, "x")), panel.y.places(positions(trace, "y"))
    sides = [places if len(places) == count + 1 else _sides(places) for places, count in ((x, cells.shape[1]), (y, cells.shape[0]))]
    drawn = panel.axes.pcolormesh(*sides, cells, **scale(trace, panel.page))
    if trace.get("texttemplate") and cells.size <= _WRITTEN_CELLS:
        for row, place_y in enumerate(y[: cells.shape[0]]):
            for column, place_x in enumerate(x[: cells.shape[1]]):
                value = float(cells[row, column])
                if not math.isnan(value):
                    red, green, blue, _ = drawn.cmap(drawn.norm(value))
                    ink = "white" if 0.3 * red + 0.6 * green + 0.1 * blue < 0.5 else "#333f48"
                    panel.axes.annotate(f"{value:.4g}", (place_x, place_y), ha="center", va="center", color=ink, fontsize=8)
    bar_of_colors(panel, drawn, trace)


def _sides(places: list[float]) -> list[float]:
    """Returns the sides of cells around their middles."""
    if len(places) < 2:
        return [places[0] - 0.5, places[0] + 0.5]
    between = [(left + right) / 2 for left, right in zip(places, places[1:])]
    return [2 * places[0] - between[0], *between, 2 * places[-1] - between[-1]]


def scale(part: dict[str, Any], layout: dict[str, Any]) -> dict[str, Any]:
    """Returns the color map of a trace or marker, and its ends."""
    from matplotlib.colors import LinearSegmentedColormap

    part = {**part, **(layout.get(str(part.get("coloraxis"))) or {})}
    steps = part.get("colorscale")
    options: dict[str, Any] = {"cmap": "plasma"}
    if isinstance(steps, list):
        colors = [(float(place), color_of(color)) for place, color in steps]
        if all(color is not None for _, color in colors):
            options["cmap"] = LinearSegmentedColormap.from_list("plotly", colors)
    for key, name in (("cmin", "vmin"), ("cmax", "vmax"), ("zmin", "vmin"), ("zmax", "vmax")):
        if isinstance(part.get(key), (int, float)):
            options[name] = part[key]
    return options


def colors_of(panel: Panel, values: list[float], part: dict[str, Any]) -> Any:
    """Returns the color of each value on a scale, which is drawn beside the panel."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    options = scale(part, panel.page)
    mapped = ScalarMappable(Normalize(options.get("vmin"), options.get("vmax")), options["cmap"])
    colors = mapped.to_rgba(values)
    bar_of_colors(panel, mapped, part)
    return colors


def bar_of_colors(panel: Panel, drawn: Any, part: dict[str, Any]) -> None:
    """Draws the scale of colors beside a panel."""
    shared = panel.page.get(str(part.get("coloraxis"))) or {}
    if part.get("showscale", shared.get("showscale", True)) is not False:
        title = words((shared.get("colorbar") or part.get("colorbar") or {}).get("title"))
        bar = panel.axes.figure.colorbar(drawn, ax=panel.axes, pad=0.02)
        bar.outline.set_visible(False)
        bar.set_label(title)


def draw_pie(axes: Any, trace: dict[str, Any]) -> None:
    """Draws the slices of a pie, the largest first."""
    labels, values = trace.get("labels"), trace.get("values")
    count = len(values) if isinstance(values, list) else len(labels or [])
    labels = labels if isinstance(labels, list) else [str(number) for number in range(count)]
    totals: dict[str, float] = {}
    for label, value in zip(labels, values if isinstance(values, list) else [1] * count):
        totals[str(label)] = totals.get(str(label), 0.0) + max(float(value or 0), 0.0)
    shown = [(label, total) for label, total in totals.items() if total]
    if trace.get("sort") is not False:
        shown.sort(key=lambda one: -one[1])
    colors = (trace.get("marker") or {}).get("colors")
    own = dict(zip(map(str, labels), colors)) if isinstance(colors, list) else {}
    hole = numeric(trace, "hole", 0)
    axes.pie(
        [total for _, total in shown],
        labels=[plain(label) for label, _ in shown],
        colors=[color_of(own.get(label)) or COLORS[number % len(COLORS)] for number, (label, _) in enumerate(shown)],
        autopct="%.1f%%",
        pctdistance=0.7 if not hole else (1 + hole) / 2,
        startangle=90,
        wedgeprops={"width": 1 - hole, "edgecolor": "white"},
        textprops={"fontsize": 9},
    )
    title = words(trace.get("title"))
    if title:
        axes.set_title(title)
