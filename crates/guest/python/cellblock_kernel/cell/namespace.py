"""The names that cells share: a real module called `__main__`."""

import builtins
import sys
from types import ModuleType
from typing import Any

_Module = ModuleType


class Namespace:
    """Holds `__main__` and the names that are always in it."""

    def __init__(self) -> None:
        # The program that started the kernel keeps its own __main__ alive.
        self._first = sys.modules.get("__main__")
        self.base: dict[str, Any] = {}
        # The base without names that setup code bound.
        self._fixed: dict[str, Any] = {}
        self._builtins: Any = builtins
        self.module = self._make()
        sys.modules["__main__"] = self.module

    @property
    def names(self) -> dict[str, Any]:
        """Returns the globals of cells."""
        return self.module.__dict__

    def _make(self) -> ModuleType:
        module = _Module("__main__")
        module.__dict__["__builtins__"] = self._builtins
        module.__dict__.update(self.base)
        return module

    def restrict(self, names: Any) -> None:
        """Gives cells these builtins: a module or a dictionary."""
        self._builtins = names
        self.names["__builtins__"] = names

    def add(self, names: dict[str, Any]) -> None:
        """Adds names that every new namespace has."""
        self._fixed.update(names)
        self.base.update(names)
        self.names.update(names)

    def keep(self, before: dict[str, Any]) -> None:
        """Adds to the base what setup code has bound since a copy of the names was made, until the next reset."""
        for name, value in self.names.items():
            if before.get(name, before) is not value and not name.startswith("__"):
                self.base[name] = value

    def reset(self) -> None:
        """Starts over with the base names. Setup code has to run again."""
        self.base.clear()
        self.base.update(self._fixed)
        self.module = self._make()
        sys.modules["__main__"] = self.module

    def enter(self, store: bool) -> dict[str, Any]:
        """Returns a cell's globals: the shared ones, or a scratch copy."""
        modules = sys.modules
        if store:
            modules["__main__"] = self.module
            names = self.module.__dict__
            names["__builtins__"] = self._builtins
            names["__name__"] = "__main__"
            # Warnings are shown once per line, and line numbers start anew in each cell.
            names.pop("__warningregistry__", None)
            return names
        scratch = _Module("__main__")
        scratch.__dict__.update(self.module.__dict__)
        scratch.__dict__["__builtins__"] = self._builtins
        modules["__main__"] = scratch
        return scratch.__dict__

    def leave(self) -> None:
        """Makes the shared names `__main__` again, whatever the cell did to `sys.modules`."""
        sys.modules["__main__"] = self.module
