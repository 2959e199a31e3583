"""Lists a session's variables without calling any of their code."""

import sys
from types import FunctionType, ModuleType
from typing import Any

from cellblock_kernel.cell.failure import module_name, type_name
from cellblock_kernel.outputs.limits import many

_CHARS = 80
_VARIABLES = 5000


def summaries(names: dict[str, Any], base: dict[str, Any]) -> list[dict[str, str]]:
    """Lists one entry per user variable, in the order of first assignment."""
    shown = [
        {"name": name, "type": type_name(type(value)), "summary": _summary(value)}
        for name, value in names.items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and base.get(name) is not value
    ]
    return shown[:_VARIABLES]


def _summary(value: Any) -> str:
    kind = type(value)
    if kind in (bool, float, type(None), complex):
        return repr(value)
    if kind is int:
        return repr(value) if value.bit_length() < 256 else f"an integer of {value.bit_length()} bits"
    if kind in (str, bytes, bytearray):
        text = repr(value[:_CHARS])
        return text if len(value) <= _CHARS else f"{text}… ({len(value)} in all)"
    if kind in (list, tuple, dict, set, frozenset):
        return many(len(value), "item")
    if kind is FunctionType:
        return f"function of {many(value.__code__.co_argcount, 'argument')}"
    if kind is type:
        return f"class {type_name(value)}"
    return _array(value)


def _array(value: Any) -> str:
    """Returns shapes of the libraries' own types: their attributes run no user code."""
    kind = type(value)
    root = module_name(kind).split(".")[0]
    if root not in ("numpy", "pandas", "polars", "pyarrow") or root not in sys.modules:
        return ""
    try:
        shape = value.shape
        dtype = getattr(value, "dtype", None)
        if len(shape) == 2 and dtype is None:
            return f"{many(shape[0], 'row')} × {many(shape[1], 'column')}"
        return f"shape {tuple(shape)}, {dtype}"
    except Exception:
        return ""
