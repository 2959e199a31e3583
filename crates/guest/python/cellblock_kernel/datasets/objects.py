"""Columns of Python objects: values of one type as Arrow, nested and mixed ones as JSON text."""

from __future__ import annotations

import datetime
import decimal
import json
from typing import Any

from cellblock_kernel.datasets.form import NotPublishable, arrow

_dumps = json.dumps
_JSON = (str, int, float, bool, list, dict, type(None))
# Types whose values Arrow returns as they are, with the names that the form has for them.
_PLAIN: dict[type, str] = {
    str: "str",
    bytes: "bytes",
    bool: "bool",
    int: "int",
    float: "float",
    decimal.Decimal: "decimal",
    datetime.date: "date",
    datetime.datetime: "datetime",
    datetime.time: "time",
    datetime.timedelta: "timedelta",
}


def encode(values: Any, what: str, pandas: Any) -> tuple[Any, dict[str, Any]]:
    """Returns an array of objects as an Arrow array, and what restores them."""
    pa = arrow()
    missing = _missing(values, what, pandas)
    cells = values.tolist()
    if missing is not None:
        gone = pandas.isna(values)
        cells = [None if absent is True else cell for cell, absent in zip(cells, gone.tolist())]
    kinds = set(map(type, cells)) - {type(None)}
    form: dict[str, Any] = {"missing": missing}
    if len(kinds) <= 1:
        kind = next(iter(kinds), str)
        name = _PLAIN.get(kind)
        if name is None and kind.__name__ == "ndarray":
            return _arrays(cells, what, form)
        if name is not None:
            try:
                array = pa.array(cells, type=_TYPES.get(name, _none)())
                if name in _EXACT or _all_same(cells, array.to_pylist()):
                    return array, form | {"objects": name}
            except (pa.ArrowException, OverflowError, UnicodeError):
                pass
    return _json(cells, what), form | {"objects": "json"}


def _none() -> None:
    """Lets Arrow choose the type."""


_EXACT = frozenset({"str", "bytes", "bool", "int", "float", "date"})
_TYPES: dict[str, Any] = {
    "str": lambda: arrow().large_string(),
    "bytes": lambda: arrow().large_binary(),
    "bool": lambda: arrow().bool_(),
    "int": lambda: arrow().int64(),
    "float": lambda: arrow().float64(),
    "date": lambda: arrow().date32(),
}


def _missing(values: Any, what: str, pandas: Any) -> str | None:
    """Returns the kind of the missing values, of which there may be only one."""
    gone = values[pandas.isna(values)]
    kinds = {_kind_of_missing(value, pandas) for value in gone}
    if len(kinds) > 1:
        raise NotPublishable(
            f"{what} has missing values of several kinds ({', '.join(sorted(kinds))}), which would become one; "
            "use one of them, for example with .where(x.notna(), None)"
        )
    return next(iter(kinds), None)


def _kind_of_missing(value: Any, pandas: Any) -> str:
    if value is None:
        return "None"
    if value is pandas.NaT:
        return "NaT"
    return "NA" if value is pandas.NA else "nan"


def _arrays(cells: list[Any], what: str, form: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Encodes cells that are arrays of numbers."""
    pa = arrow()
    present = [cell for cell in cells if cell is not None]
    dtypes = {(cell.dtype.str, cell.ndim) for cell in present}
    dtype, dimensions = next(iter(dtypes))
    if len(dtypes) > 1 or dimensions != 1 or present[0].dtype.kind not in "biuf" or dtype[0] == ">" or dtype[1:] == "f2":
        raise NotPublishable(f"{what} has arrays that are not all one-dimensional and of one number type; convert them to lists")
    return pa.array(cells), form | {"objects": "array", "dtype": dtype}


def _json(cells: list[Any], what: str) -> Any:
    texts: list[str | None] = []
    for row, cell in enumerate(cells):
        if cell is None:
            texts.append(None)
            continue
        try:
            text = _dumps(cell, allow_nan=False)
            if not _same(cell, json.loads(text)):
                raise TypeError
            text.encode()
        except (TypeError, ValueError, RecursionError):
            kind = type(cell).__name__
            raise NotPublishable(
                f"{what} has a value in row {row} that would not be the same after loading ({kind}); "
                "convert the column to one plain type, for example with .astype(str)"
            ) from None
        texts.append(text)
    return arrow().array(texts, type=arrow().large_string())


def _all_same(these: list[Any], others: list[Any]) -> bool:
    return all(map(_same, these, others))


def _same(one: Any, other: Any) -> bool:
    """Tells whether two values are equal with all types inside them."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and _all_same(one, other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, datetime.datetime):
        return bool(one == other) and str(one.tzinfo) == str(other.tzinfo) and one.fold == other.fold
    return bool(one == other)


def decode(array: Any, form: dict[str, Any], pandas: Any) -> Any:
    """Returns the objects that `encode` was given, as an array."""
    import numpy

    cells = array.to_pylist()
    kind = form["objects"]
    if kind == "json":
        cells = [None if cell is None else json.loads(cell) for cell in cells]
    elif kind == "array":
        cells = [None if cell is None else numpy.array(cell, dtype=form["dtype"]) for cell in cells]
    missing = form["missing"]
    if missing not in (None, "None"):
        value = {"nan": float("nan"), "NaT": pandas.NaT, "NA": pandas.NA}[missing]
        cells = [value if cell is None else cell for cell in cells]
    objects = numpy.empty(len(cells), dtype=object)
    # An assignment of the whole list would spread nested lists of one length.
    for row, cell in enumerate(cells):
        objects[row] = cell
    return objects
