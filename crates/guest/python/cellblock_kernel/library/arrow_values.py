"""Values of Arrow columns that pandas or polars would change or reject: infinite times, times of day, nested whole numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

# Units of a day, by Arrow's unit, and the digits of a fraction of a second.
_UNITS = {"s": (86400, 0), "ms": (86400 * 10**3, 3), "us": (86400 * 10**6, 6), "ns": (86400 * 10**9, 9)}


def without_infinity(column: Any) -> tuple[Any, bool]:
    """Returns a column with nulls for `infinity` and `-infinity`, and whether it had some.

    DuckDB stores them as the ends of a timestamp's or date's range, which everyone else reads as years such as 294247.
    """
    if not _any(column, _is_infinite):
        return column, False
    pyarrow = import_module("pyarrow")
    if _limit(column.type) is None:
        return _rebuilt(column, column.type, _finite), True
    compute = import_module("pyarrow.compute")
    chunks = [
        compute.if_else(compute.is_in(_numbers(chunk), _ends(chunk)), pyarrow.scalar(None, chunk.type), chunk)
        for chunk in column.chunks
    ]
    return pyarrow.chunked_array(chunks, column.type), True


def infinity_note(name: str) -> str:
    """Returns the note for a column that had such values."""
    return f"`{name}` has times or dates that are `infinity` or `-infinity`; they are read as missing"


def with_text_times(column: Any, nanoseconds: bool = False) -> Any:
    """Returns a column with text for its times of day if Python lacks some of them: 24:00, and those with nanoseconds,
    unless the caller's library has them."""
    if not any(map(_is_time, _kinds(column.type))):
        return column
    pyarrow = import_module("pyarrow")
    text = _changed(column.type, lambda kind: pyarrow.string() if _is_time(kind) else kind)
    if _any(column, _has_midnight_at_the_end):
        return _rebuilt(column, text, _clock)
    if nanoseconds:
        return column
    try:
        return column.cast(_changed(column.type, lambda kind: pyarrow.time64("us") if str(kind) == "time64[ns]" else kind))
    except pyarrow.ArrowInvalid:
        # Times of Python end at microseconds.
        return column.cast(text)


def has_nested_integers(kind: Any) -> bool:
    """Returns whether a type is nested with whole numbers, which pandas makes floats beside nulls."""
    types = import_module("pyarrow.types")
    return bool(types.is_nested(kind)) and any(map(types.is_integer, _kinds(kind)))


def _is_time(kind: Any) -> bool:
    return bool(import_module("pyarrow.types").is_time(kind))


def _limit(kind: Any) -> int | None:
    """Returns the number that stands for infinity in a type."""
    types = import_module("pyarrow.types")
    if types.is_timestamp(kind):
        return 2**63 - 1
    return 2**31 - 1 if types.is_date32(kind) else None


def _numbers(array: Any) -> Any:
    return array.view(f"int{array.type.bit_width}")


def _ends(array: Any) -> Any:
    limit = _limit(array.type) or 0
    return import_module("pyarrow").array([limit, -limit], f"int{array.type.bit_width}")


def _extremes(array: Any) -> tuple[int, int] | None:
    found = import_module("pyarrow.compute").min_max(_numbers(array)).as_py()
    return None if found["min"] is None else (found["min"], found["max"])


def _is_infinite(array: Any) -> bool:
    limit = _limit(array.type)
    ends = None if limit is None else _extremes(array)
    return ends is not None and limit is not None and (ends[0] == -limit or ends[1] == limit)


def _has_midnight_at_the_end(array: Any) -> bool:
    ends = _extremes(array) if _is_time(array.type) else None
    return ends is not None and ends[1] >= _UNITS[array.type.unit][0]


def _finite(kind: Any, value: int) -> int | None:
    limit = _limit(kind)
    return None if limit is not None and abs(value) == limit else value


def _clock(kind: Any, value: int) -> int | str:
    if not _is_time(kind):
        return value
    day, digits = _UNITS[kind.unit]
    seconds, fraction = divmod(value, day // 86400)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{fraction:0{digits}}".rstrip("0") if fraction else text


def _any(column: Any, matches: Callable[[Any], bool]) -> bool:
    """Returns whether a column has an array of innermost values that matches."""
    if not any(_is_time(kind) or _limit(kind) is not None for kind in _kinds(column.type)):
        return False
    return any(matches(array) for chunk in column.chunks for array in _arrays(chunk))


def _arrays(array: Any) -> Iterator[Any]:
    types = import_module("pyarrow.types")
    if types.is_map(array.type):
        children = [array.keys, array.items]
    elif types.is_struct(array.type):
        children = array.flatten()
    elif types.is_list(array.type) or types.is_large_list(array.type) or types.is_fixed_size_list(array.type):
        children = [array.flatten()]
    else:
        yield array
        return
    for child in children:
        yield from _arrays(child)


def _kinds(kind: Any) -> Iterator[Any]:
    """Yields the innermost types of a type."""
    found: list[Any] = []

    def note(inner: Any) -> Any:
        found.append(inner)
        return inner

    _changed(kind, note)
    yield from found


def _changed(kind: Any, change: Callable[[Any], Any]) -> Any:
    """Returns a type with others in place of its innermost types."""
    pyarrow = import_module("pyarrow")
    types = pyarrow.types

    def inner(field: Any) -> Any:
        return field.with_type(_changed(field.type, change))

    if types.is_struct(kind):
        return pyarrow.struct([inner(kind.field(at)) for at in range(kind.num_fields)])
    if types.is_map(kind):
        return pyarrow.map_(inner(kind.key_field), inner(kind.item_field))
    if types.is_fixed_size_list(kind):
        return pyarrow.list_(inner(kind.value_field), kind.list_size)
    if types.is_large_list(kind):
        return pyarrow.large_list(inner(kind.value_field))
    return pyarrow.list_(inner(kind.value_field)) if types.is_list(kind) else change(kind)


def _rebuilt(column: Any, target: Any, change: Callable[[Any, Any], Any]) -> Any:
    """Makes a column again, one value at a time, with other innermost times and dates."""
    pyarrow = import_module("pyarrow")

    def number(kind: Any) -> Any:
        is_counted = _is_time(kind) or _limit(kind) is not None
        return (pyarrow.int32() if kind.bit_width == 32 else pyarrow.int64()) if is_counted else kind

    def converted(kind: Any, value: Any) -> Any:
        types = pyarrow.types
        if value is None:
            return None
        if types.is_struct(kind):
            return {field.name: converted(field.type, value[field.name]) for field in kind}
        if types.is_map(kind):
            return [(converted(kind.key_type, key), converted(kind.item_type, item)) for key, item in value]
        if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
            return [converted(kind.value_type, item) for item in value]
        return change(kind, value) if number(kind) != kind else value

    numbers = column.cast(_changed(column.type, number))
    return pyarrow.chunked_array([pyarrow.array([converted(column.type, value) for value in numbers.to_pylist()], target)])
