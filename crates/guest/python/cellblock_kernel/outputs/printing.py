"""`print` of cells in a notebook: a table or a chart is shown as with `display`, because its text is of little use to readers."""

from __future__ import annotations

import sys
from typing import Any

from cellblock_kernel.cell.stdio import Streams
from cellblock_kernel.outputs import registry
from cellblock_kernel.outputs.display import Display

_print = print


def typed(display: Display, streams: Streams) -> Any:
    """Returns such a `print`. Everything except exactly one table or chart on the cell's own stdout is text."""

    def print(*values: Any, sep: str | None = " ", end: str | None = "\n", file: Any = None, flush: bool = False) -> None:
        target = sys.stdout if file is None else file
        if len(values) == 1 and target is streams.out and registry.is_picture_or_table(values[0]):
            display.show(values[0])
        else:
            _print(*values, sep=sep, end=end, file=file, flush=flush)

    print.__doc__ = _print.__doc__
    print.__qualname__ = "print"
    print.__module__ = "builtins"
    return print
