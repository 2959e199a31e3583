"""Bars, histograms and box plots."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cellblock_kernel.outputs.plotly import cells
from cellblock_kernel.outputs.plotly.reading import NORMS, color_of, color_of_trace, errors, is_lying, numeric, positions

if TYPE_CHECKING:
    from cellblock_kernel.outputs.plotly.panel import Panel

_SHARE = 0.8
_BINS = 60


def draw_bars(panel: Panel, traces: list[tuple[int, dict[str, Any]]], mode: str) -> None:
    """Draws bars."""
    drawn = []
    for number, trace in traces:
        x, y = panel.x.places(positions(trace, "x")), panel.y.places(positions(trace, "y"))
        lying = trace.get("orientation") == "h"
        drawn.append((number, trace, y if lying else x, x if lying else y, lying))
    _side_by_side(panel, drawn, mode, None)


def _side_by_side(panel: Panel, drawn: list[Any], mode: str, width: float | None) -> None:
    """Draws bars at the same places beside each other, on each other or in front of each other."""
    places = sorted({place for _, _, at, _, _ in drawn for place in at if not math.isnan(place)})
    step = min((right - left for left, right in zip(places, places[1:])), default=1.0)
    whole = width or step * _SHARE
    above: dict[float, float] = {}
    below: dict[float, float] = {}
    # Traces of one name are in one slot, as those of a color over several panels.
    groups = list(dict.fromkeys(_slot(number, trace) for number, trace, *_ in drawn))
    for number, trace, at, values, lying in drawn:
        bases, shifted, thick = [0.0] * len(at), at, whole
        if mode == "group" and len(groups) > 1:
            thick = whole / len(groups)
            slot = groups.index(_slot(number, trace))
            shifted = [place - whole / 2 + thick * (slot + 0.5) for place in at]
        elif mode in ("stack", "relative"):
            bases = []
            for place, value in zip(at, values):
                stack = below if value < 0 else above
                bases.append(stack.get(place, 0.0))
                stack[place] = bases[-1] + (0.0 if math.isnan(value) else value)
        count = min(len(at), len(values))
        opacity = 0.6 if mode == "overlay" and len(drawn) > 1 else 1.0
        colors = _colors(panel, number, trace, count)
        options: dict[str, Any] = {"color": colors, "alpha": numeric(trace, "opacity", opacity)}
        shifted, values, bases = shifted[:count], values[:count], bases[:count]
        if lying:
            bars = panel.axes.barh(shifted, values, thick, left=bases, **options)
        else:
            bars = panel.axes.bar(shifted, values, thick, bottom=bases, **options)
        ends = errors(trace.get("error_x" if lying else "error_y"), values)
        if ends is not None:
            tops = [base + value for base, value in zip(bases, values)]
            middles = (tops, shifted) if lying else (shifted, tops)
            panel.axes.errorbar(*middles, fmt="none", ecolor="#333f48", capsize=2, **{"xerr" if lying else "yerr": ends})
        if count:
            panel.name(trace, bars)
    if drawn and any(value < 0 for _, _, _, values, _ in drawn for value in values):
        (panel.axes.axvline if drawn[0][4] else panel.axes.axhline)(0, color="#333f48", linewidth=0.8)


def _slot(number: int, trace: dict[str, Any]) -> str:
    """Returns what traces in one slot have in common."""
    return str(trace.get("offsetgroup") or number)


def _colors(panel: Panel, number: int, trace: dict[str, Any], count: int) -> Any:
    """Returns the color of all bars, or one for each."""
    own, marker = color_of_trace(number, trace), trace.get("marker") or {}
    given = marker.get("color")
    if not isinstance(given, list) or len(given) != count:
        return own
    if all(isinstance(one, (int, float)) for one in given):
        return cells.colors_of(panel, given, marker)
    return [color_of(one) or own for one in given]


def draw_histograms(panel: Panel, traces: list[tuple[int, dict[str, Any]]], mode: str) -> None:
    """Draws histograms, which share their bins."""
    import numpy

    if not traces:
        return
    lying = not isinstance(traces[0][1].get("x"), list) or traces[0][1].get("orientation") == "h"
    key, along = ("y", panel.y) if lying else ("x", panel.x)
    weights = [trace.get("x" if lying else "y") if trace.get("histfunc") == "sum" else None for _, trace in traces]
    values = [numpy.array(along.places(positions(trace, key)), dtype=float) for _, trace in traces]
    known = [numpy.isfinite(found) for found in values]
    together = numpy.concatenate([found[there] for found, there in zip(values, known)])
    edges = numpy.arange(len(along.names) + 1) - 0.5 if along.names else _edges(traces[0][1], together, key, numpy)
    drawn = []
    for (number, trace), found, there, weight in zip(traces, values, known, weights):
        heavy = numpy.array([float(one or 0) for one in weight], dtype=float)[there] if isinstance(weight, list) else None
        counts, _ = numpy.histogram(found[there], bins=edges, weights=heavy)
        norm = trace.get("histnorm") or ""
        if norm and counts.sum():
            counts = counts / counts.sum() * NORMS[norm]
        drawn.append((number, trace, ((edges[:-1] + edges[1:]) / 2).tolist(), counts.astype(float).tolist(), lying))
    width = float(edges[1] - edges[0]) * (_SHARE if along.names else 0.96)
    _side_by_side(panel, drawn, mode, width)


def _edges(trace: dict[str, Any], values: Any, key: str, numpy: Any) -> Any:
    bins = trace.get(f"{key}bins") or {}
    if all(isinstance(bins.get(name), (int, float)) for name in ("start", "end", "size")) and bins["size"] > 0:
        count = min(math.ceil((bins["end"] - bins["start"]) / bins["size"]), 10 * _BINS)
        return bins["start"] + bins["size"] * numpy.arange(max(count, 1) + 1)
    if not len(values):
        return numpy.array([0.0, 1.0])
    most = trace.get(f"nbins{key}")
    if not isinstance(most, int) or most < 1:
        most = min(len(numpy.histogram_bin_edges(values, "auto")) - 1, _BINS)
    span = float(values.max() - values.min())
    least = span / most if span else 1.0
    power = 10.0 ** math.floor(math.log10(least))
    # Plotly's bins are as long as 1, 2 or 5 times a power of ten, and begin at a multiple of it.
    step = next(power * digits for digits in (1, 2, 5, 10) if power * digits >= least * (1 - 1e-9))
    first = math.floor(float(values.min()) / step) * step
    return first + step * numpy.arange(int((float(values.max()) - first) / step + 1e-9) + 2)


def draw_boxes(panel: Panel, traces: list[tuple[int, dict[str, Any]]], grouped: bool) -> None:
    """Draws a box plot for each name of each trace."""
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Patch

    groups = list(dict.fromkeys(_slot(number, trace) for number, trace in traces)) if grouped else [""]
    whole = 0.7 / len(groups)
    for number, trace in traces:
        lying = is_lying(trace)
        values, names = (trace.get("x"), trace.get("y")) if lying else (trace.get("y"), trace.get("x"))
        along = panel.y if lying else panel.x
        values = values if isinstance(values, list) else []
        names = names if isinstance(names, list) else [str(trace.get("name") or "")] * len(values)
        boxes: dict[float, list[float]] = {}
        for name, value in zip(names, values):
            if value is not None:
                boxes.setdefault(along.place(name), []).append(float(value))
        slot = groups.index(_slot(number, trace)) if grouped else 0
        shift = whole * (slot - (len(groups) - 1) / 2)
        color = color_of_trace(number, trace)
        parts = {part: {"color": color} for part in ("boxprops", "whiskerprops", "capprops", "medianprops")}
        parts["boxprops"] = {"edgecolor": color, "facecolor": (*to_rgb(color), 0.4)}
        if boxes:
            panel.axes.boxplot(
                list(boxes.values()),
                positions=[place + shift for place in boxes],
                widths=whole * 0.8,
                orientation="horizontal" if lying else "vertical",
                patch_artist=True,
                manage_ticks=False,
                flierprops={"marker": "o", "markersize": 3, "markerfacecolor": color, "markeredgecolor": color},
                **parts,
            )
            panel.name(trace, Patch(color=color))
