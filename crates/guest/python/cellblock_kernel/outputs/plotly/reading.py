"""Traces of Plotly: which are drawn here, and their places, colors and lines."""

from __future__ import annotations

import re
from typing import Any

_DASHES = {"dot": ":", "dash": "--", "longdash": "--", "dashdot": "-.", "longdashdot": "-."}
_RGB = re.compile(r"rgba?\((\d{1,3}), ?(\d{1,3}), ?(\d{1,3})(?:, ?([\d.]+))?\)")
# The same as Plotly's, where a trace names none.
COLORS = ("#636efa", "#ef553b", "#00cc96", "#ab63fa", "#ffa15a", "#19d3f3", "#ff6692", "#b6e880", "#ff97ff", "#fecb52")
NORMS = {"": 1.0, "percent": 100.0, "probability": 1.0}
NOTHING = float("nan")
_KINDS = ("scatter", "scattergl", "bar", "histogram", "box", "pie", "heatmap", "candlestick", "ohlc")


def unknown(trace: dict[str, Any]) -> str | None:
    """Returns the kind of a trace that is not drawn here."""
    kind = str(trace.get("type") or "scatter")
    if kind not in _KINDS:
        return kind
    if kind == "histogram":
        if trace.get("histfunc") not in (None, "count", "sum") or (trace.get("histnorm") or "") not in NORMS:
            return "histogram (of another function than count or sum)"
        if (trace.get("cumulative") or {}).get("enabled"):
            return "histogram (cumulative)"
    if kind == "box" and trace.get("q1") is not None:
        return "box (of given quartiles)"
    if kind == "heatmap" and not _is_grid(trace.get("z")):
        return "heatmap (without a grid of values)"
    if kind.startswith("scatter") and trace.get("fill") in ("toself", "tonext"):
        return "scatter (filled outline)"
    return None


def _is_grid(values: Any) -> bool:
    return isinstance(values, list) and bool(values) and all(isinstance(row, list) and len(row) == len(values[0]) for row in values)


def size(trace: dict[str, Any]) -> int:
    """Returns the number of values of a trace."""
    lists = [value for value in trace.values() if isinstance(value, list)]
    return max((len(value) * (len(value[0]) if value and isinstance(value[0], list) else 1) for value in lists), default=0)


def positions(trace: dict[str, Any], key: str) -> list[Any]:
    """Returns the values of a trace along `x` or `y`."""
    found = trace.get(key)
    kind, count = trace.get("type") or "scatter", _count(trace)
    if kind == "heatmap" and not isinstance(found, list):
        return [*range(count[0 if key == "y" else 1])]
    if kind in ("candlestick", "ohlc") and key == "y":
        return [value for part in ("low", "high") for value in trace.get(part) or []]
    if isinstance(found, list):
        return found
    if kind in ("scatter", "scattergl", "bar", "candlestick", "ohlc"):
        start, step = trace.get(f"{key}0"), trace.get(f"d{key}")
        start, step = start if isinstance(start, (int, float)) else 0, step if isinstance(step, (int, float)) else 1
        return [start + step * number for number in range(count[0])]
    if kind == "box" and key == ("y" if is_lying(trace) else "x"):
        return [str(trace.get("name") or "")]
    return []


def _count(trace: dict[str, Any]) -> tuple[int, int]:
    if trace.get("type") == "heatmap":
        return len(trace["z"]), len(trace["z"][0])
    return max((len(trace[key]) for key in ("x", "y", "close") if isinstance(trace.get(key), list)), default=0), 0


def is_lying(trace: dict[str, Any]) -> bool:
    """Returns whether the values of a trace are along x."""
    if trace.get("orientation") in ("h", "v"):
        return bool(trace["orientation"] == "h")
    return isinstance(trace.get("x"), list) and not isinstance(trace.get("y"), list)


def color_of(color: Any) -> Any:
    """Returns a color of Plotly as one of matplotlib; none if it is unknown."""
    from matplotlib.colors import is_color_like

    if not isinstance(color, str):
        return None
    found = _RGB.fullmatch(color.replace(" ", ""))
    if found is not None:
        red, green, blue, alpha = found.groups()
        return (int(red) / 255, int(green) / 255, int(blue) / 255, float(alpha or 1))
    return color if is_color_like(color) else None


def dash_of(line: Any) -> str:
    """Returns how a line is dashed."""
    return _DASHES.get(str((line or {}).get("dash")), "-")


def numeric(part: dict[str, Any], key: str, default: float) -> float:
    """Returns a number of a part of a trace."""
    found = part.get(key)
    return found if isinstance(found, (int, float)) else default


def color_of_trace(number: int, trace: dict[str, Any]) -> Any:
    """Returns the color of a trace."""
    for part in ("line", "marker"):
        found = color_of((trace.get(part) or {}).get("color"))
        if found is not None:
            return found
    return color_of(trace.get("fillcolor")) or COLORS[number % len(COLORS)]


def errors(error: Any, values: list[float]) -> Any:
    """Returns the lengths of error bars down and up; none if there are none."""
    if not isinstance(error, dict) or error.get("visible") is False:
        return None
    if isinstance(error.get("array"), list):
        up = [abs(float(one or 0)) for one in error["array"]]
        down = [abs(float(one or 0)) for one in error["arrayminus"]] if isinstance(error.get("arrayminus"), list) else up
        return [down, up] if len(up) == len(values) == len(down) else None
    value = error.get("value")
    if not isinstance(value, (int, float)):
        return None
    return [abs(one) * value / 100 if error.get("type") == "percent" else value for one in values]
