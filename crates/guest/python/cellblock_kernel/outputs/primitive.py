"""Scalars as JSON values, and values that no other describer knows as text."""

from __future__ import annotations

import math
import sys
from itertools import islice
from typing import Any

from cellblock_kernel.cell.failure import module_name, type_name
from cellblock_kernel.cell.pattern import pattern
from cellblock_kernel.outputs.limits import Limits, cut_middle, many
from cellblock_kernel.outputs.output import Output

EXACT = frozenset({int, float, bool, str, type(None)})
_default_repr: Any = object.__repr__
_SAFE = 2**53
_DIGITS = 4000
_WIDTH = 100
_ITEMS = 1000
_CONTAINERS = (list, tuple, dict, set, frozenset)
_ADDRESS = pattern(r" at 0x[0-9a-fA-F]{4,}(?=[>,;:)])")
_BARE = pattern(r"<[\w.<>]+(?: object)? at 0x[0-9a-fA-F]+>")
# What a `repr` of these libraries shows is data.
_OF_DATA = frozenset({"numpy", "pandas", "polars", "pyarrow", "duckdb"})


def describe(value: int | float | bool | str | None, name: str | None, limits: Limits) -> Output:
    """Describes a scalar whose type is exactly one of `EXACT`."""
    shown: int | float | bool | str | None = value
    if type(value) is str:
        return _text_output(value, "str", name, limits)
    if type(value) is int:
        if not -_SAFE <= value <= _SAFE:
            return _text_output(_digits(value), "int", name, limits)
    elif type(value) is float and not math.isfinite(value):
        shown = repr(value)
    return _output(shown, type(value).__name__, name)


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
    return _text_output(text_of(value), qualified(value), name, limits)


def qualified(value: Any) -> str:
    """Returns the name of a value's type, with its module unless that is `builtins` or `__main__`."""
    kind = type(value)
    module = module_name(kind)
    name = type_name(kind)
    return name if module in ("", "builtins", "__main__") else f"{module}.{name}"


def with_article(name: str) -> str:
    """Returns the name of a type after `a` or `an`."""
    return f"{'an' if name[:1].lower() in tuple('aeiou') else 'a'} {name}"


def text_of(value: Any) -> str:
    """Returns the `repr` of a value without addresses, which differ in every run; containers span several lines, and an error
    in `repr` is named."""
    try:
        if type(value) in _CONTAINERS:
            text = _container(value)
            # Only those of its items: a text in it may have one, too.
            return _ADDRESS.sub(_keeper(_addresses(value)), text) if " at 0x" in text else text
        text = str(repr(value))
        return _ADDRESS.sub("", text) if " at 0x" in text and _describes_itself(value) else text
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return f"<{qualified(value)} object whose __repr__ raised {type_name(type(error))}>"


def repr_is_default(value: Any) -> bool:
    """Returns whether the `repr` of a value only names its class and address."""
    try:
        return type(value).__repr__ is _default_repr or _BARE.fullmatch(repr(value)) is not None
    except Exception:
        return False


def _describes_itself(value: Any) -> bool:
    """Returns whether the `repr` of a value is about it, and has no texts that the value contains."""
    return module_name(type(value)).split(".")[0] not in _OF_DATA or repr_is_default(value)


def _addresses(value: Any, depth: int = 3) -> set[str]:
    """Returns the addresses of a container's items, as their `repr` has them."""
    found: set[str] = set()
    for item in islice([*value.keys(), *value.values()] if isinstance(value, dict) else value, 2 * _ITEMS):
        if type(item) in _CONTAINERS:
            if depth:
                found |= _addresses(item, depth - 1)
        elif not isinstance(item, (str, bytes, int, float)):
            found.add(f" at {hex(id(item))}")
            found.add(f" at {hex(id(getattr(item, '__self__', None)))}")
    return found


def _keeper(known: set[str]) -> Any:
    # Pillow writes addresses with capital letters.
    return lambda found: "" if found[0].lower() in known else found[0]


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
        return f"{text}\n… and {many(more, 'more item')} ({qualified(value)} of {len(value)})"
    return pformat(value, width=_WIDTH, compact=True, sort_dicts=False)


def _digits(value: int) -> str:
    if value.bit_length() < _DIGITS * 3:
        return str(value)
    # Python refuses to print longer integers, because that takes quadratic time.
    return hex(value)


def _text_output(text: str, kind: str, name: str | None, limits: Limits) -> Output:
    """Describes a text, of one that is too long its beginning and its end."""
    output = _output(cut_middle(text, limits.text_chars), kind, name)
    if len(text) > limits.text_chars:
        output.header["truncated"] = True
        output.header["note"] = f"only the beginning and the end are shown: this text has {many(len(text), 'character')}"
    return output


def _output(value: Any, kind: str, name: str | None) -> Output:
    return Output({"type": "primitive", "name": name, "value": value, "python_type": kind})
