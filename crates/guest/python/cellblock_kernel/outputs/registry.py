"""Finds the describer that turns a value into an output.

A describer takes the value, its name and the limits, and returns an `Output`, or None to pass. Describers are
tried in order; the last one, text, accepts everything. A library's describer looks the library up in
`sys.modules` and passes if it is not there.

Before them come converters, which code registers for classes of its own: they turn a value into another one that has
a describer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, Optional

from cellblock_kernel.cell.failure import type_name
from cellblock_kernel.library import findings
from cellblock_kernel.outputs import altair, exception, frame, image, plot, primitive, rich
from cellblock_kernel.outputs.limits import Limits
from cellblock_kernel.outputs.output import Output
from cellblock_kernel.outputs.plotly import figure as plotly_figure

Describer = Callable[[Any, Optional[str], Limits], Optional[Output]]

_describers: list[Describer] = [
    exception.describe,
    frame.describe,
    plot.describe,
    altair.describe,
    image.describe,
    plotly_figure.describe,
    primitive.describe_numpy,
    rich.describe,
]
Converter = Callable[[Any], Any]

# By class, or by its name in the module that offers it.
_converters: dict[type | str, Converter] = {}
_of_image: dict[type | str, Converter] = {}


def register(kind: type | str, convert: Converter | None) -> None:
    """Shows values of a class and its subclasses as what `convert(value)` returns, which can be anything that
    `display` shows: a table, a chart, text. `kind` is a class, or its name as text, such as
    "geopandas.GeoDataFrame", which does not import it. `None` as `convert` undoes it.
    """
    if not isinstance(kind, type) and not (isinstance(kind, str) and "." in kind):
        raise TypeError(f"kind must be a class or text such as 'module.Class', not {kind!r}")
    if convert is None:
        _converters.pop(kind, None)
    elif callable(convert):
        _converters[kind] = convert
    else:
        raise TypeError(f"convert must be a function of one value, not {convert!r}")


def use_of_image(kind: str, converter: str) -> None:
    """Registers a function `module:function` that the image names. Code can replace it."""

    def convert(value: Any) -> Any:
        module, _, name = converter.partition(":")
        function: Any = import_module(module)
        for part in name.split("."):
            function = getattr(function, part)
        return function(value)

    _of_image[kind] = convert


def forget() -> None:
    """Drops the converters that code has registered."""
    _converters.clear()


def is_picture_or_table(value: Any) -> bool:
    """Returns whether a value is a data frame or a chart."""
    table = frame.table_of(value)
    return (
        (table is not None and not table.series)
        or plot.is_figure(value)
        or altair.is_chart(value)
        or plotly_figure.is_figure(value)
    )


def _find(kind: type, used: tuple[type, ...]) -> tuple[type, Converter] | None:
    """Returns the class nearest to a value's that has a converter."""
    for converters in (_converters, _of_image):
        if not converters:
            continue
        known = {_class_of(key): convert for key, convert in converters.items()}
        for base in kind.__mro__:
            if base in known and base not in used:
                return base, known[base]
    return None


def _class_of(key: type | str) -> Any:
    """Returns a class by its name, if it is imported already: without it there are no values of it."""
    if isinstance(key, type):
        return key
    module, _, rest = key.rpartition(".")
    while module and module not in sys.modules:
        module, _, outer = module.rpartition(".")
        rest = f"{outer}.{rest}"
    found: Any = sys.modules.get(module)
    for name in rest.split("."):
        found = getattr(found, name, None)
    return found


def describe(value: Any, name: str | None, limits: Limits, used: tuple[type, ...] = ()) -> Output:
    """Turns a value into an output."""
    found = _find(type(value), used) if _converters or _of_image else None
    if found is not None:
        kind, convert = found
        try:
            converted = describe(convert(value), name, limits, (*used, kind))
            plot.note_shown(value)
            return converted
        except Exception as error:
            findings.add(
                "output_not_converted",
                f"the converter of {type_name(kind)} failed, so the value is shown as usual: {_line(error)}"[:500],
            )
    if type(value) in primitive.EXACT:
        return primitive.describe(value, name, limits)
    for describer in _describers:
        output = describer(value, name, limits)
        if output is not None:
            return output
    return primitive.describe_text(value, name, limits)


def _line(error: Exception) -> str:
    try:
        return f"{type_name(type(error))}: {error}"
    except Exception:
        return type_name(type(error))
