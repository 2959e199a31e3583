"""Gives code from a file the environment of a script: `sys.argv` and `__file__`."""

from __future__ import annotations

import os
import sys
from typing import Any

from cellblock_kernel.cell import places

_module: Any = sys


class Script:
    """Knows the file of the running code."""

    def __init__(self) -> None:
        self._name: str | None = None
        self._argv: list[str] = []

    def begin(self, name: str, argv: list[str] | None, names: dict[str, Any]) -> None:
        """Starts a cell named after a file, or in angle brackets, with the arguments it was given. A cell's changes to
        `sys.argv` persist for its file."""
        name = "" if name.startswith("<") else name
        if name:
            names["__file__"] = os.path.join(places.real("/workspace"), name)
        elif self._name:
            names.pop("__file__", None)
        argv = argv or [name]
        if name != self._name or argv != self._argv:
            self._name, self._argv = name, argv
            _module.argv = argv.copy()
