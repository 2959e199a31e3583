"""`inspect.getfile` that also finds the cell of a class: Python asks for the file of its module, and `__main__` has
none.

`inspect` takes long to import and few cells need it, so it is changed when something imports it.
"""

from __future__ import annotations

from typing import Any

from cellblock_kernel.cell import source
from cellblock_kernel.cell.on_import import on_import


def _change(module: Any) -> None:
    original = getattr(module, "getfile", None)
    if original is None or hasattr(original, "of_cells"):
        return

    def getfile(value: Any) -> Any:
        name = source.file_of(value) if isinstance(value, type) and value.__module__ == "__main__" else None
        return original(value) if name is None else name

    getfile.of_cells = True  # type: ignore[attr-defined]
    module.getfile = getfile


def install() -> None:
    """Changes `inspect`, now or when it is imported."""
    on_import("inspect", _change)
