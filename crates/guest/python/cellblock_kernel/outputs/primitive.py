"""Scalars as JSON values, and values that no other describer knows as text."""

from __future__ import annotations

import math
import sys
from itertools import islice
from typing import Any

from cellblock_kernel.cell.failure import module_name, type_name
from cellblock_kernel.outputs.limits import Limits, cut
from cellblock_kernel.outputs.output import Output

EXACT = frozenset({int, float, bool, str, type(None)})
_SAFE = 2**53
_DIGITS = 4000
_WIDTH = 100
_ITEMS = 1000
_CONTAINERS = (list, tuple, dict, set, frozenset)


def describe(value: int | float | bool | str | None, name: str | None, limits: Limits) -> Output:
    """Describes a scalar whose type is exactly one of `EXACT`."""
    shown: int | float | bool | str | None = value
    truncated = False
    if type(value) is str:
        shown, truncated = cut(value, limits.text_chars)
    elif type(value) is int:
        if not -_SAFE <= value <= _SAFE:
            shown, truncated = cut(_digits(value), limits.text_chars)
    elif type(value) is float and not math.isfinite(value):
        shown = repr(value)
    return _output(shown, type(value).__name__, name, truncated)


def describe_numpy(value: Any, name: str | None, limits: Limits) -> Output | None:
    """Describes a numpy scalar by its Python value."""
    numpy: Any = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.generic):
        return None
    item = value.item()
    if type(item) not in EXACT:
        return describe_text(value, name, limits)
    output = describe(item, name, limits)
    output.header["python_type"] = qualified(value)
    return output


def describe_text(value: Any, name: str | None, limits: Limits) -> Output:
    """Describes anything by its text."""
    text, truncated = cut(text_of(value), limits.text_chars)
    return _output(text, qualified(value), name, truncated)


def qualified(value: Any) -> str:
    """Returns the name of a value's type, with its module unless that is `builtins` or `__main__`."""
    kind = type(value)
    module = module_name(kind)
    name = type_name(kind)
    return name if module in ("", "builtins", "__main__") else f"{module}.{name}"


def text_of(value: Any) -> str:
    """Returns the `repr` of a value; containers span several lines, and an error in `repr` is named."""
    try:
        if type(value) in _CONTAINERS:
            return _container(value)
        return str(repr(value))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return f"<{qualified(value)} object whose __repr__ raised {type_name(type(error))}>"


def _container(value: Any) -> str:
    more = len(value) - _ITEMS
    if more <= 0:
        text = repr(value)
        if len(text) <= _WIDTH:
            return text
    # Only here, because few values need it and it takes long to import.
    from pprint import pformat

    if more > 0:
        kept: Any = islice(value.items() if isinstance(value, dict) else value, _ITEMS)
        text = pformat(dict(kept) if isinstance(value, dict) else list(kept), width=_WIDTH, compact=True, sort_dicts=False)
        return f"{text}\n… and {more} more items ({qualified(value)} of {len(value)})"
    return pformat(value, width=_WIDTH, compact=True, sort_dicts=False)


def _digits(value: int) -> str:
    if value.bit_length() < _DIGITS * 3:
        return str(value)
    # Python refuses to print longer integers, because that takes quadratic time.
    return hex(value)


def _output(value: Any, kind: str, name: str | None, truncated: bool) -> Output:
    header = {"type": "primitive", "name": name, "value": value, "python_type": kind}
    if truncated:
        header["truncated"] = True
    return Output(header)
