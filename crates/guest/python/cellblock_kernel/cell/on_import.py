"""Changes to modules that take long to import and that few cells need: made when something imports them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

Change = Callable[[Any], None]

_changes: dict[str, Change] = {}
# What was changed, and by what: a kernel has the modules of its template, and changing them again took it 3 ms.
_made: dict[str, tuple[ModuleType, Change]] = {}


class _Finder:
    """Finds such a module where Python finds it, and changes it once it is loaded."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Leaves all other modules to the next finder."""
        change = _changes.get(name)
        spec = None if change is None else PathFinder.find_spec(name, path)
        loader: Any = None if spec is None else spec.loader
        if loader is not None and change is not None:
            loader.exec_module = _then_change(loader.exec_module, name, change)
        return spec


def _then_change(load: Callable[[ModuleType], None], name: str, change: Change) -> Callable[[ModuleType], None]:
    def exec_module(module: ModuleType) -> None:
        load(module)
        _make(name, change, module)

    return exec_module


def _make(name: str, change: Change, module: ModuleType) -> None:
    change(module)
    _made[name] = (module, change)


_finder = _Finder()


def on_import(name: str, change: Change) -> None:
    """Changes a module now, or when it is imported. A module that is loaded again is changed again, which must be harmless."""
    _changes[name] = change
    module = sys.modules.get(name)
    if module is not None and _made.get(name) != (module, change):
        _make(name, change, module)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
