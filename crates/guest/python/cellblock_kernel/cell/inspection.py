"""`inspect.getfile` that also finds the cell of a class: Python asks for the file of its module, and `__main__` has
none.

`inspect` takes long to import and few cells need it, so it is changed when something imports it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from cellblock_kernel.cell import source

_NAME = "inspect"


class _Finder:
    """Finds `inspect` where Python finds it, and changes it once it is loaded."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Leaves all other modules to the next finder."""
        spec = PathFinder.find_spec(name, path) if name == _NAME else None
        loader: Any = None if spec is None else spec.loader
        if loader is not None:
            loader.exec_module = _then_change(loader.exec_module)
        return spec


def _then_change(load: Callable[[ModuleType], None]) -> Callable[[ModuleType], None]:
    def exec_module(module: ModuleType) -> None:
        load(module)
        _change(module)

    return exec_module


def _change(module: Any) -> None:
    original = getattr(module, "getfile", None)
    if original is None or hasattr(original, "of_cells"):
        return

    def getfile(value: Any) -> Any:
        name = source.file_of(value) if isinstance(value, type) and value.__module__ == "__main__" else None
        return original(value) if name is None else name

    getfile.of_cells = True  # type: ignore[attr-defined]
    module.getfile = getfile


_finder = _Finder()


def install() -> None:
    """Changes `inspect`, now or when it is imported."""
    if _NAME in sys.modules:
        _change(sys.modules[_NAME])
    elif _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
