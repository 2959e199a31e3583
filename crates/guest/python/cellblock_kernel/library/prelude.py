"""Names that are bound before the first cell. Libraries that are not yet imported wait until a cell uses their
name."""

import ast
import datetime
import re
import sys
from importlib import import_module
from typing import Any

from cellblock_kernel.library import documents, sql

_LIBRARIES = {"pd": "pandas", "np": "numpy", "plt": "matplotlib.pyplot", "alt": "altair", "pl": "polars"}
# Helpers for data frames, whose modules import their libraries.
_SERIES = "cellblock_kernel.timeseries"
_HELPERS = dict.fromkeys(("safe_merge_timeseries", "align_timeseries", "derive_change_series"), _SERIES)
_WORD = re.compile(r"[A-Za-z_]\w*")
# Builtins that run text as code.
_RUN_TEXT = frozenset({"compile", "eval", "exec"})


def names(preludes: list[str]) -> dict[str, Any]:
    """Returns the names of the requested preludes, without those whose libraries are `waiting`."""
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
        elif prelude == "derivation":
            # Only here, because other sessions do not need them and they take long to import.
            from cellblock_kernel.library.derivation import emission, result

            bound["set_result"] = result.set_result
            bound["save_figure"] = emission.save_figure
            bound["render_chart"] = emission.render_chart
        elif prelude == "datasets":
            from cellblock_kernel.datasets import functions

            bound.update(functions.names())
        elif prelude == "notebook":
            if sql.is_available():
                bound["sql"] = sql.sql
        else:
            raise ValueError(f"unknown prelude {prelude!r}: expected analysis, datasets, derivation, documents or notebook")
    return bound


def waiting(preludes: list[str]) -> dict[str, str]:
    """Returns names of the preludes whose libraries are not yet imported, with their modules."""
    found: dict[str, str] = {}
    if "analysis" in preludes:
        found.update((name, module) for name, module in _LIBRARIES.items() if module not in sys.modules)
    if "derivation" in preludes:
        found.update(_HELPERS)
    return found


def may_use(code: str, pending: dict[str, str]) -> bool:
    """Returns whether a cell can use a waiting name: its text has the name, or can make it."""
    if not code.isascii() or "\\" in code:
        return True
    return any(name in code for name in (*pending, *_RUN_TEXT))


def load(tree: ast.AST, pending: dict[str, str], bound: dict[str, Any]) -> dict[str, Any]:
    """Imports the waiting libraries that a cell uses, and returns them by name.

    A name that the cell imports itself, or that is already bound, is left alone; for a library that the image
    lacks, the `NameError` remains. Text may be code, as in `exec("np.arange(3)")`: its words count as used, and
    so do all names if the executed text is not in the cell.
    """
    used: set[str] = set()
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            used.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            used.update(_WORD.findall(node.value))
        elif isinstance(node, ast.Call) and _runs_unknown_text(node):
            used.update(pending)
        elif isinstance(node, ast.alias):
            imported.add(node.asname or node.name)
    found: dict[str, Any] = {}
    for name in used & pending.keys() - imported - bound.keys():
        module = pending[name]
        try:
            imported_module = import_module(module)
            found[name] = getattr(imported_module, name) if name in _HELPERS else imported_module
        except ImportError:
            pass
        # Not earlier: an interrupt of the import must not take the name from later cells.
        del pending[name]
    return found


def _runs_unknown_text(call: ast.Call) -> bool:
    named = isinstance(call.func, ast.Name) and call.func.id in _RUN_TEXT
    return named and bool(call.args) and not isinstance(call.args[0], ast.Constant)
