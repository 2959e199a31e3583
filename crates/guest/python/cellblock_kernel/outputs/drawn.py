"""Numbers of drawings that cannot be read back from their artists: box plots and pies keep only lines and angles.

The two methods of matplotlib that draw them, for pandas and seaborn as well, leave the numbers at the artists.
"""

from __future__ import annotations

import functools
from typing import Any

from cellblock_kernel.cell.on_import import on_import

_NUMBERS = "_cellblock_numbers"


def install() -> None:
    """Changes the methods when matplotlib is imported."""
    on_import("matplotlib.axes._axes", _change)


def numbers_of(artist: Any) -> dict[str, Any] | None:
    """Returns the numbers of the drawing that an artist is a part of: the same dict for all its parts."""
    found: dict[str, Any] | None = getattr(artist, _NUMBERS, None)
    return found


def _change(module: Any) -> None:
    axes = module.Axes
    if hasattr(axes.bxp, "keeps"):
        return
    axes.bxp, axes.pie = _keeping(axes.bxp, _of_boxes), _keeping(axes.pie, _of_pie)


def _keeping(original: Any, read: Any) -> Any:
    @functools.wraps(original)
    def draw(*arguments: Any, **options: Any) -> Any:
        drawn = original(*arguments, **options)
        try:
            read(drawn, arguments, options)
        except Exception:
            pass  # the drawing is the cell's, and it worked
        return drawn

    draw.keeps = True  # type: ignore[attr-defined]
    return draw


def _of_boxes(drawn: Any, arguments: Any, options: Any) -> None:
    boxes = [dict(one) for one in (arguments[1] if len(arguments) > 1 else options["bxpstats"])]
    parts = [part for kind in drawn.values() for part in kind if part is not None]
    lying = options.get("orientation") == "horizontal" or options.get("vert") is False
    places = options.get("positions")
    numbers = {
        "kind": "box",
        "boxes": boxes,
        "places": list(range(1, len(boxes) + 1)) if places is None else list(places),
        "lying": lying,
        "label": options.get("label"),
        "face": drawn["boxes"][0] if drawn.get("boxes") else None,
    }
    for part in parts:
        setattr(part, _NUMBERS, numbers)


def _of_pie(drawn: Any, arguments: Any, options: Any) -> None:
    wedges = getattr(drawn, "wedges", None) or drawn[0]
    values = list(arguments[1] if len(arguments) > 1 else options["x"])
    labels = options.get("labels") or (arguments[3] if len(arguments) > 3 else None) or [wedge.get_label() for wedge in wedges]
    numbers = {"kind": "pie", "labels": [str(label) for label in labels], "values": values}
    for wedge in wedges:
        setattr(wedge, _NUMBERS, numbers)
