"""Finds the describer that turns a value into an output.

A describer takes the value, its name and the limits, and returns an `Output`, or None to pass. Describers are
tried in order; the last one, text, accepts everything. A library's describer looks the library up in
`sys.modules` and passes if it is not there.
"""

from collections.abc import Callable
from typing import Any

from cellblock_kernel.outputs import altair, exception, frame, image, plot, primitive, rich
from cellblock_kernel.outputs.limits import Limits
from cellblock_kernel.outputs.output import Output

Describer = Callable[[Any, str | None, Limits], Output | None]

_describers: list[Describer] = [
    exception.describe,
    frame.describe,
    plot.describe,
    altair.describe,
    image.describe,
    primitive.describe_numpy,
    rich.describe,
]
_registered: dict[type, Describer] = {}


def register(kind: type, describer: Describer) -> None:
    """Makes a describer the first to be tried for a class and its subclasses."""
    _registered[kind] = describer


def describe(value: Any, name: str | None, limits: Limits) -> Output:
    """Turns a value into an output."""
    if type(value) in primitive.EXACT:
        return primitive.describe(value, name, limits)
    if _registered:
        for kind in type(value).__mro__:
            describer = _registered.get(kind)
            output = describer(value, name, limits) if describer else None
            if output is not None:
                return output
    for describer in _describers:
        output = describer(value, name, limits)
        if output is not None:
            return output
    return primitive.describe_text(value, name, limits)
