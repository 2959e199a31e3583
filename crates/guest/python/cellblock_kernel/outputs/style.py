"""matplotlib's settings for pictures that are read at their own size, and the last touch before one is drawn.

Code that chooses other settings, by a style, by `rcParams` or by a `matplotlibrc` of its own, keeps them.
"""

from __future__ import annotations

import math
import os
import sys
from typing import Any

from cellblock_kernel.cell.on_import import on_import

# Ten colors that people with any kind of color vision can tell apart, after Petroff (2021).
COLORS = ("#3f90da", "#e76300", "#832db6", "#94a4a2", "#bd1f01", "#ffa90e", "#333f48", "#a96b59", "#b9ac70", "#92dadd")
_SLANT = 30
# Labels closer than this many pixels read as one; those that are chosen have more between them.
_GAP, _AIR = 3, 8
# Minimum width of a date with its distance to the next, in points.
_DATE = 38
# What an axis of dates has in common, as a reader would write it.
_DAY, _SHARED = "%b %-d", ("", "%Y", "%b %Y", "%b %-d, %Y", "%b %-d, %Y", "%b %-d, %Y %H:%M")


def install() -> None:
    """Applies the settings when matplotlib is imported."""
    on_import("matplotlib", _apply)


def _apply(module: Any) -> None:
    if not os.path.realpath(module.matplotlib_fname()).startswith(os.path.realpath(module.get_data_path())):
        return  # the cell's own file
    import cycler

    settings = {
        "axes.prop_cycle": cycler.cycler(color=COLORS),
        "patch.facecolor": COLORS[0],
        # Short labels, with what they share once at the end of the axis.
        "date.converter": "concise",
    }
    for target in (module.rcParams, module.rcParamsOrig):
        target.update(settings)


def finish(figure: Any) -> None:
    """Keeps panels and labels of a figure apart, unless its code has arranged them."""
    engine = _engine(figure)
    if engine is not None:
        figure.set_layout_engine(engine)
    for axes in figure.axes:
        _choose_dates(axes)
    try:
        figure.draw_without_rendering()
    except Exception:
        if engine is None:
            raise
        figure.set_layout_engine("none")
        figure.draw_without_rendering()
    moved = [_part(axes) for axes in figure.axes]
    if any(moved):
        figure.draw_without_rendering()


def _engine(figure: Any) -> str | None:
    """Returns what arranges several panels that nothing else arranges. A color bar that was made without the
    constrained layout cannot be in one."""
    matplotlib: Any = sys.modules["matplotlib"]
    places = figure.subplotpars
    names = ("left", "right", "bottom", "top", "wspace", "hspace")
    is_default = all(getattr(places, name) == matplotlib.rcParams[f"figure.subplot.{name}"] for name in names)
    if figure.get_layout_engine() is not None or not is_default:
        return None
    placed = [axes.get_subplotspec() is not None for axes in figure.axes]
    if any(axes.get_label() == "<colorbar>" for axes in figure.axes):
        return "tight" if len(placed) > 2 and all(placed) else None
    return "constrained" if sum(placed) > 1 else None


def _choose_dates(axes: Any) -> None:
    """Has as many dates below an axis as fit, if matplotlib chooses them, and what they share as a reader would write it."""
    locator, formatter = axes.xaxis.get_major_locator(), axes.xaxis.get_major_formatter()
    default = type(locator)() if type(locator).__name__ == "AutoDateLocator" else None
    if default is not None and (locator.minticks, locator.maxticks) == (default.minticks, default.maxticks):
        width = axes.get_position().width * axes.figure.get_figwidth() * 72
        most = max(3, int(width / _DATE))
        locator.minticks, locator.maxticks = 3, {frequency: min(most, count) for frequency, count in default.maxticks.items()}
    if type(formatter).__name__ == "ConciseDateFormatter" and formatter.offset_formats == type(formatter)(locator).offset_formats:
        formatter.offset_formats, formatter.zero_formats[3] = list(_SHARED), _DAY


def _part(axes: Any) -> bool:
    """Parts names and dates below an axis that would touch; returns whether it has changed any."""
    axis = axes.xaxis
    kinds = axis.get_majorticklabels(), axis.get_minorticklabels()
    major, minor = ([label for label in labels if label.get_visible() and label.get_text().strip()] for labels in kinds)
    labels = sorted([*major, *minor], key=_left)
    if axes.name != "rectilinear" or not _touch(labels) or any(label.get_rotation() for label in labels):
        return False
    if minor or any("\n" in label.get_text() for label in labels):
        _thin(labels)
        return True
    places = sorted(float(label.get_transform().transform(label.get_position())[0]) for label in labels)
    distance = min(right - left for left, right in zip(places, places[1:]))
    height = max(float(label.get_window_extent().height) for label in labels)
    if distance * math.sin(math.radians(_SLANT)) >= height:
        for label in axis.get_majorticklabels():
            label.set(rotation=_SLANT, ha="right", rotation_mode="anchor")
        return True
    for number, label in enumerate(labels):
        label.set(rotation=90)
        label.set_visible(number % math.ceil(height / max(distance, 1)) == 0)
    return True


def _left(label: Any) -> float:
    return float(label.get_window_extent().x0)


def _touch(labels: list[Any], gap: int = _GAP) -> bool:
    boxes = [label.get_window_extent() for label in labels]
    return any(right.x0 - left.x1 < gap for left, right in zip(boxes, boxes[1:]))


def _thin(labels: list[Any]) -> None:
    """Hides all labels but every second, third and so on; those of several lines, which have the year, are the last to
    go."""
    long = [number for number, label in enumerate(labels) if "\n" in label.get_text()]
    first = long[0] if long else 0
    for step in range(2, len(labels) + 1):
        kept = [label for number, label in enumerate(labels) if number in long or (number - first) % step == 0]
        if not _touch(kept, _AIR):
            break
    for label in labels:
        label.set_visible(label in kept)
