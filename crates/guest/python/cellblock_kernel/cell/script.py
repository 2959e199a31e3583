"""What code that comes from a file finds as a script would: `sys.argv` and `__file__`."""

import os
import sys
from typing import Any

from cellblock_kernel.cell import places

_module: Any = sys


class Script:
    """Knows which file the running code comes from."""

    def __init__(self) -> None:
        self._name: str | None = None

    def begin(self, name: str, names: dict[str, Any]) -> None:
        """Begins a cell by its name: a file's, or one in angle brackets. What a cell did to `sys.argv` holds for its file."""
        name = "" if name.startswith("<") else name
        if name:
            names["__file__"] = os.path.join(places.real("/workspace"), name)
        elif self._name:
            names.pop("__file__", None)
        if name != self._name:
            self._name = name
            _module.argv = [name]
