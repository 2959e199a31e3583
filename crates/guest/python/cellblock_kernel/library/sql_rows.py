"""The rows of a DuckDB query as a data frame, with every number as DuckDB has it.

Rows leave DuckDB as Arrow data, because its own conversion to pandas rounds whole numbers of 128 bits and decimals to
floats, takes a month for 30 days, and prints warnings. Nothing here uses threads: a kernel with threads cannot be copied
for a rescue.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from cellblock_kernel.library import arrow_values, findings

# What Arrow has no faithful type for leaves as another type: the largest numbers as their digits.
_OTHER_TYPES = {
    "uhugeint": "VARCHAR",
    "bignum": "VARCHAR",
    "time with time zone": "VARCHAR",
    "bit": "VARCHAR",
    "union": "VARCHAR",
    "variant": "VARCHAR",
}
_WHOLE = ("hugeint", "uhugeint", "bignum")
_MASKED = {
    "int8": "Int8Dtype", "int16": "Int16Dtype", "int32": "Int32Dtype", "int64": "Int64Dtype", "uint8": "UInt8Dtype",
    "uint16": "UInt16Dtype", "uint32": "UInt32Dtype", "uint64": "UInt64Dtype", "bool": "BooleanDtype",
}  # fmt: skip
_DAY = 86400 * 10**6


def frame(relation: Any, library: str, decimals: bool) -> Any:
    """Returns the rows of a relation as a data frame of `pandas` or `polars`.

    Without `decimals`, the decimals of a query over tables that have none become floats: a literal such as `1.5` made
    them.
    """
    if find_spec("pyarrow") is None:
        return relation.df() if library == "pandas" else relation.pl()
    types, names = relation.types, _distinct(relation.columns)
    table = relation.project(", ".join(_projected(at, kind) for at, kind in enumerate(types))).to_arrow_table()
    columns = [_column(_readable(table.column(at), names[at], library), kind, library, decimals) for at, kind in enumerate(types)]
    module = import_module(library)
    if library == "polars":
        return module.DataFrame([module.Series(name, column) for name, column in zip(names, columns)])
    frame = module.concat(columns, axis=1) if columns else module.DataFrame()
    frame.columns = names
    return frame


def _distinct(names: list[str]) -> list[str]:
    """Returns names like DuckDB's own frames have them: the second `a` is `a_1`."""
    found: dict[str, None] = {}
    for name in names:
        new, number = name, 0
        while new in found:
            number += 1
            new = f"{name}_{number}"
        found[new] = None
    return list(found)


def _projected(at: int, kind: Any) -> str:
    cast = f"::{_leaving(kind)}" if _has_other_type(kind) else ""
    return f'#{at + 1}{cast} as "{at}"'


def _has_other_type(kind: Any) -> bool:
    nested = kind.children if kind.id in ("list", "array", "map", "struct") else []
    return kind.id in _OTHER_TYPES or any(_has_other_type(child) for name, child in nested if name != "size")


def _leaving(kind: Any, inner: bool = False) -> str:
    """Returns the type with which a column leaves DuckDB."""
    if kind.id in ("list", "array"):
        (_, child), *size = kind.children
        return f"{_leaving(child, True)}[{size[0][1] if size else ''}]"
    if kind.id == "map":
        key, value = (_leaving(child, True) for _, child in kind.children)
        return f"MAP({key}, {value})"
    if kind.id == "struct":
        fields = ['"' + name.replace('"', '""') + '" ' + _leaving(child, True) for name, child in kind.children]
        return f"STRUCT({', '.join(fields)})"
    if inner and kind.id == "uhugeint":
        # A number that does not fit is an error.
        return "HUGEINT"
    return _OTHER_TYPES.get(kind.id, str(kind))


def _readable(column: Any, name: str, library: str) -> Any:
    """Returns a column without the times that a library lacks; a finding names the column if a value is lost."""
    column, had_infinity = arrow_values.without_infinity(column)
    if had_infinity:
        findings.add("infinity_to_missing", arrow_values.infinity_note(name), name)
    return arrow_values.with_text_times(column, nanoseconds=library == "polars")


def _column(column: Any, kind: Any, library: str, decimals: bool) -> Any:
    """Returns a column as a Series of pandas, or as what polars makes one of."""
    import pyarrow

    if kind.id in _WHOLE:
        try:
            column = column.cast(pyarrow.int64())
        except pyarrow.ArrowInvalid:
            return _large([None if value is None else int(value) for value in column.to_pylist()], library)
    elif kind.id == "decimal" and not decimals:
        column = column.cast(pyarrow.float64())
    elif kind.id == "interval":
        spans = column.to_pylist()
        if not any(span is not None and span.months for span in spans):
            micros = [None if span is None else span.days * _DAY + span.nanoseconds // 1000 for span in spans]
            column = pyarrow.chunked_array([pyarrow.array(micros, pyarrow.duration("us"))])
        elif library == "polars":
            return [
                None if span is None else {name: getattr(span, name) for name in ("months", "days", "nanoseconds")}
                for span in spans
            ]
    if library == "polars":
        return column
    mask = _MASKED.get(str(column.type))
    if mask is not None and column.null_count:
        pandas = import_module("pandas")
        return pandas.Series(getattr(pandas, mask)().__from_arrow__(column))
    # Whole numbers in lists and structs stay such beside nulls.
    return column.to_pandas(use_threads=False, date_as_object=False, maps_as_pydicts="strict", integer_object_nulls=True)


def _large(values: list[int | None], library: str) -> Any:
    """Returns whole numbers beyond 64 bits."""
    if library == "pandas":
        pandas = import_module("pandas")
        # A kernel that meets no such number starts without this module.
        from decimal import Decimal

        return pandas.Series([None if value is None else Decimal(value) for value in values], dtype=object)
    polars = import_module("polars")
    for kind in (polars.Int128, polars.UInt128):
        try:
            return polars.Series(values, dtype=kind)
        except (OverflowError, TypeError, polars.exceptions.PolarsError):
            continue
    return [None if value is None else str(value) for value in values]
