"""Names that are bound before the first cell. Libraries that nobody has imported yet wait until a cell uses their name."""

import ast
import datetime
import sys
from importlib import import_module
from typing import Any

from cellblock_kernel import documents

_LIBRARIES = {"pd": "pandas", "np": "numpy", "plt": "matplotlib.pyplot", "alt": "altair", "pl": "polars"}


def names(preludes: list[str]) -> dict[str, Any]:
    """The names of the preludes asked for, without those whose libraries are `waiting`."""
    bound: dict[str, Any] = {}
    for prelude in preludes:
        if prelude == "analysis":
            bound.update({name: sys.modules[module] for name, module in _LIBRARIES.items() if module in sys.modules})
            bound["datetime"] = datetime.datetime
            bound["timedelta"] = datetime.timedelta
            bound["timezone"] = datetime.timezone
        elif prelude == "documents":
            bound["read_pdf_text"] = documents.read_pdf_text
            bound["read_excel"] = documents.read_excel
            bound["read_pptx_text"] = documents.read_pptx_text
        else:
            raise ValueError(f"unknown prelude {prelude!r}: expected analysis or documents")
    return bound


def waiting(preludes: list[str]) -> dict[str, str]:
    """Names of the preludes whose libraries nobody has imported, with their modules."""
    if "analysis" not in preludes:
        return {}
    return {name: module for name, module in _LIBRARIES.items() if module not in sys.modules}


def load(tree: ast.AST, pending: dict[str, str], bound: dict[str, Any]) -> dict[str, Any]:
    """Imports what a cell uses of the waiting libraries, and answers it by name.

    A name that the cell imports itself, or that is bound already, is left to it; a library that the image lacks stays a
    `NameError`.
    """
    used: set[str] = set()
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            used.add(node.id)
        elif isinstance(node, ast.alias):
            imported.add(node.asname or node.name)
    found: dict[str, Any] = {}
    for name in used & pending.keys() - imported - bound.keys():
        module = pending.pop(name)
        try:
            found[name] = import_module(module)
        except ImportError:
            continue
    return found
