"""matplotlib figures: captured at `plt.show()`, at `display(figure)`, and at the end of a cell, then closed.

A picture has its figure's own size at the figure's own resolution, limited to between 100 and 200 dpi. Its
margins are cut to the drawing (`bbox_inches="tight"`), so that labels outside the axes are kept.
"""

from __future__ import annotations

import atexit
import io
import sys
import warnings
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from cellblock_kernel.cell.failure import module_name, type_name
from cellblock_kernel.cell.on_import import on_import
from cellblock_kernel.outputs import series, style
from cellblock_kernel.outputs.limits import Limits
from cellblock_kernel.outputs.output import Output

_MIN_DPI, _MAX_DPI = 100, 200
_MAX_SIDE = 6000
_PADDING = 0.1
_BytesIO = io.BytesIO
_unregister = atexit.unregister


class Screen(Protocol):
    """The destination of figures."""

    def emit(self, output: Output) -> None:
        """Sends an output."""

    def show(self, value: Any, name: str | None = None) -> None:
        """Sends a value as an output."""


class _Cell:
    """Outputs of the running cell."""

    def __init__(self) -> None:
        self.screen: Screen | None = None
        self.mine: Callable[[], bool] = bool
        self.shown: weakref.WeakSet[Any] = weakref.WeakSet()
        self.count = 0


_cell = _Cell()


def hook(screen: Screen, mine: Callable[[], bool]) -> None:
    """Starts a cell: forgets shown figures, and makes `plt.show` capture figures, now or once pyplot is imported."""
    _cell.screen = screen
    _cell.mine = mine
    if _cell.shown:
        _cell.shown.clear()
    _cell.count = 0
    on_import("matplotlib.pyplot", _take_over)
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        # A cell before may have replaced it.
        _take_over(pyplot)


def _take_over(pyplot: Any) -> None:
    # Whatever the backend: code may choose another one that is not interactive.
    pyplot.show = show


def show(*_arguments: Any, **_options: Any) -> None:
    """Captures every open figure now; replaces `plt.show`."""
    screen = _cell.screen
    if screen is not None and _cell.mine():
        _capture(screen)


def capture(screen: Screen, failing: bool) -> None:
    """Ends a cell: captures the figures that are still open. In a cell that fails anyway, a broken figure is left out."""
    if _managers() is None:
        return
    try:
        _capture(screen)
    except Exception:
        if not failing:
            raise


def has_figures() -> bool:
    """Returns whether figures are open."""
    return _managers() is not None


def outlive_exit() -> None:
    """Removes matplotlib's exit handler, which would close the figures that other exit handlers draw."""
    helpers: Any = sys.modules.get("matplotlib._pylab_helpers")
    if helpers is not None:
        _unregister(helpers.Gcf.destroy_all)


def close() -> None:
    """Closes every figure."""
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")


def discard(value: Any) -> None:
    """Closes the figure of a value that was shown in another way."""
    figure = _figure_of(value)
    if figure is not None:
        sys.modules["matplotlib.pyplot"].close(figure)


def note_shown(value: Any) -> None:
    """Notes that the figure of a value was shown, so that the end of the cell does not show it again."""
    figure = _figure_of(value)
    if figure is not None:
        _cell.shown.add(figure)


def is_blank(value: Any) -> bool:
    """Returns whether a value is a figure without any drawing."""
    figure = _figure_of(value)
    return figure is not None and not _has_content(figure)


def _managers() -> list[Any] | None:
    helpers: Any = sys.modules.get("matplotlib._pylab_helpers")
    if helpers is None or not helpers.Gcf.figs:
        return None
    return [helpers.Gcf.figs[number] for number in sorted(helpers.Gcf.figs)]


def _capture(screen: Screen) -> None:
    broken: Exception | None = None
    try:
        for manager in _managers() or ():
            figure = manager.canvas.figure
            if figure not in _cell.shown and _has_content(figure):
                try:
                    # As any value, because code may have registered a converter for figures.
                    screen.show(figure)
                except Exception as error:
                    broken = broken or error
    finally:
        close()
    if broken is not None:
        raise broken


def _has_content(figure: Any) -> bool:
    return bool(figure.axes or figure.texts or figure.lines or figure.patches or figure.images or figure.artists or figure.subfigs)


def describe(value: Any, name: str | None, limits: Limits) -> Output | None:
    """Describes a figure, or the figure of axes."""
    figure = figure_of(value)
    if figure is None:
        return None
    _cell.shown.add(figure)
    return _figure(figure, name)


def is_figure(value: Any) -> bool:
    """Returns whether a value is a figure, or axes of one, or draws one."""
    return _figure_of(value) is not None or _is_plan(value)


def figure_of(value: Any) -> Any:
    """Returns the figure of a value; what describes one, as of `seaborn.objects`, is drawn. None if there is none."""
    if not _is_plan(value):
        return _figure_of(value)
    plotter = value.plot() if hasattr(value, "plot") else value
    # It has no public name. Where it has another one, the value has its picture in `_repr_png_`.
    return getattr(plotter, "_figure", None)


def _is_plan(value: Any) -> bool:
    module: Any = sys.modules.get("seaborn._core.plot")
    return module is not None and isinstance(value, (module.Plot, module.Plotter))


def _figure_of(value: Any) -> Any:
    module: Any = sys.modules.get("matplotlib.figure")
    if module is None:
        return None
    if isinstance(value, module.Figure):
        return value
    if isinstance(value, sys.modules["matplotlib.axes"].Axes):
        figure = value.figure
        return figure if isinstance(figure, module.Figure) else figure.figure
    animation: Any = sys.modules.get("matplotlib.animation")
    if animation is not None and isinstance(value, animation.Animation):
        # Its first picture, unless code has chosen a form in which it moves.
        moves = sys.modules["matplotlib"].rcParams["animation.html"] != "none"
        return None if moves else getattr(value, "_fig", None)
    # seaborn's grids
    figure = getattr(value, "figure", None) if module_name(type(value)).startswith("seaborn.") else None
    return figure if isinstance(figure, module.Figure) else None


def is_noise(value: Any) -> bool:
    """Returns whether a trailing value is just the return value of a plotting call whose figure is captured
    anyway."""
    if _managers() is None:
        return False
    figure = _figure_of(value)
    return _is_artist(value) if figure is None else _is_open(figure)


def _is_open(figure: Any) -> bool:
    return any(manager.canvas.figure is figure for manager in _managers() or ())


def _is_artist(value: Any) -> bool:
    artist: Any = sys.modules["matplotlib.artist"]
    if isinstance(value, artist.Artist):
        return not hasattr(value, "canvas")
    if module_name(type(value)).startswith("matplotlib."):
        # Containers of bars, wedges, error bars; color maps and animations have a form of their own.
        return not hasattr(type(value), "_repr_html_")
    if isinstance(value, (list, tuple)) and value:
        return any(_is_artist(item) or _figure_of(item) is not None for item in value[:50])
    if isinstance(value, dict) and value:
        return all(_is_artist(item) for item in list(value.values())[:20] if item != [])
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and type(value) is numpy.ndarray and value.dtype == object and value.size:
        return any(_is_artist(item) for item in value.flat[:50])
    return False


def _figure(figure: Any, name: str | None) -> Output:
    png = _png(figure)
    # The size is in the PNG's first chunk.
    width, height = int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")
    axes = series.axes_of(figure)
    header = {
        "type": "figure",
        "name": name or next_name(),
        "library": "matplotlib",
        "title": _title(figure, axes),
        "axes": axes,
        "series": series.series_of(figure),
        "width": width,
        "height": height,
    }
    return Output(header, [png])


def _png(figure: Any) -> memoryview:
    inches = max(float(max(figure.get_size_inches())), 0.1)
    dpi = min(max(float(figure.dpi), _MIN_DPI), _MAX_DPI, _MAX_SIDE / inches)
    buffer = _BytesIO()
    try:
        with warnings.catch_warnings(record=True) as caught:
            style.finish(figure)
            box = figure.get_tightbbox().padded(_PADDING)
            if not 0 < max(box.width, box.height) * dpi <= _MAX_SIDE:
                box = None  # an artist far outside the figure: use the figure's own bounds
            figure.savefig(buffer, format="png", dpi=dpi, bbox_inches=box)
    except MemoryError:
        raise
    except Exception as error:
        raise RuntimeError(f"the figure can not be drawn: {type_name(type(error))}: {error}") from error
    # It was drawn several times, and each time may have warned of the same.
    # No line of the cell has drawn it, so there is none to name.
    for text in dict.fromkeys(f"{type_name(one.category)}: {one.message}" for one in caught):
        print(text, file=sys.stderr)
    return buffer.getbuffer()


def next_name() -> str:
    """Returns the name of the cell's next figure, across all libraries."""
    _cell.count += 1
    return f"figure_{_cell.count}"


def _title(figure: Any, axes: list[dict[str, str]]) -> str | None:
    whole = figure.get_suptitle() if hasattr(figure, "get_suptitle") else ""
    return whole or next((one["title"] for one in axes if one["title"]), None)
