"""Prepares a kernel for a session of the dialect E2B. The session's setup code calls `install`."""

from __future__ import annotations

import os
import sys
from typing import Any

from cellblock_kernel.cell import contexts
from cellblock_kernel.e2b import values
from cellblock_kernel.outputs import plot

# Name of the value of a cell's last expression, by which the host tells it from values that the cell displayed.
_MAIN = "e2b:main"


def install(display: Any, names: dict[str, Any], home: str, environ: dict[str, str]) -> None:
    """Shows values as E2B does, and begins in `home` with these environment variables."""
    display.echo = lambda value, name, hold=False: _echo(display, value)
    values.use(display)
    contexts.begin(names)
    os.environ.update({"HOME": home, **environ})
    try:
        os.chdir(home)
    except OSError:
        # A sandbox that mounts nothing has one directory only.
        pass


def _echo(display: Any, value: Any) -> None:
    # A figure that is named at the end is the result, although it is also open.
    if plot.is_figure(value) and plot._figure_of(value) is value:
        display.show(value, _MAIN)
    else:
        type(display).echo(display, value, _MAIN)


def set_environ(wanted: dict[str, str | None]) -> None:
    """Sets environment variables; None removes one."""
    for name, value in wanted.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def enter(language: str, context: str, directory: str) -> None:
    """Makes a context the one in which cells of its language run. A directory that cannot be entered is reported on stderr."""
    try:
        contexts.enter(language, context, directory)
    except OSError as error:
        sys.stderr.write(f"note: the context's directory {directory} cannot be entered: {error.strerror}\n")
