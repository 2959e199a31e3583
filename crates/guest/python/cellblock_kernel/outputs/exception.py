"""An exception that is shown as a value."""

from __future__ import annotations

from typing import Any

from cellblock_kernel.cell import failure
from cellblock_kernel.outputs.limits import Limits
from cellblock_kernel.outputs.output import Output


def describe(value: Any, name: str | None, limits: Limits) -> Output | None:
    """Describes an exception object."""
    if not isinstance(value, BaseException):
        return None
    output = Output(failure.describe(value, None, limits.text_chars).output())
    output.header["name"] = name
    return output
