"""How much of its axis' time range a plotted line covers.

A line over times is expected to have a point at each of its own steps from the first to the last time that any line on the axis
has. Its coverage is the share of these points that it has with a finite value. Times with a missing value count as expected, so
that gaps show whether they were plotted as NaN or left out.
"""

import sys
from typing import Any

_FEWEST = 3


def of_line(axes: Any, line: Any) -> float | None:
    """The share, from 0 to 1; None for a line that is not over time, or too short to tell."""
    if not _is_time(axes) or not _in_data(axes, line):
        return None
    numpy: Any = sys.modules["numpy"]
    low, high = _view(axes)
    x, y = _points(numpy, line)
    within = (x >= low) & (x <= high)
    x, y = x[within], y[within]
    places = numpy.unique(x)
    first, last = _span(numpy, axes, low, high)
    if len(places) < 2 or not last > first:
        return None
    step = float(numpy.median(numpy.diff(places)))
    expected = max(len(places), 1 + round((last - first) / step))
    if expected < _FEWEST:
        return None
    finite = len(numpy.unique(x[numpy.isfinite(y)]))
    return min(1.0, finite / expected)


def _points(numpy: Any, line: Any) -> tuple[Any, Any]:
    """Positions on the axis as numbers, and values, of the points that have a position."""
    x = numpy.ma.filled(numpy.ma.asarray(line.get_xdata(orig=False), dtype=float), numpy.nan)
    y = numpy.ma.filled(numpy.ma.asarray(line.get_ydata(orig=False), dtype=float), numpy.nan)
    placed = numpy.isfinite(x)
    return x[placed], y[placed]


def _is_time(axes: Any) -> bool:
    get = getattr(axes.xaxis, "get_converter", None)
    converter = type(get() if get else axes.xaxis.converter).__name__
    return "Date" in converter or "Period" in converter or getattr(axes, "freq", None) is not None


def _in_data(axes: Any, line: Any) -> bool:
    """Says whether the line's positions are times; those of `axhline` are shares of the axis."""
    along, _ = line.get_transform().contains_branch_seperately(axes.transData)
    return bool(along)


def _view(axes: Any) -> tuple[float, float]:
    """What is shown: all, unless the cell has set limits."""
    if axes.get_autoscalex_on():
        return float("-inf"), float("inf")
    low, high = sorted(axes.get_xlim())
    return low, high


def _span(numpy: Any, axes: Any, low: float, high: float) -> tuple[float, float]:
    """The first and last time of any line on the axis, also of axes that share it."""
    first, last = float("inf"), float("-inf")
    for other in axes.get_shared_x_axes().get_siblings(axes):
        for line in other.lines:
            if _in_data(other, line):
                x, _ = _points(numpy, line)
                if len(x):
                    first, last = min(first, float(x.min())), max(last, float(x.max()))
    return max(first, low), min(last, high)
