"""The library that pandas reads OpenDocument workbooks with: python-calamine, in an image that lacks odfpy."""

from __future__ import annotations

from importlib.machinery import PathFinder
from typing import Any

from cellblock_kernel.cell.on_import import on_import


def install() -> None:
    """Changes the option when pandas is imported."""
    on_import("pandas", _choose)


def _choose(module: Any) -> None:
    if PathFinder.find_spec("odf") is None and PathFinder.find_spec("python_calamine") is not None:
        module.set_option("io.excel.ods.reader", "calamine")
