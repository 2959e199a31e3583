"""Arrow tables as data frames of pandas, with every value that pandas can hold."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

from cellblock_kernel.library import arrow_values


def pandas_frame(table: Any, keep_dates: bool = False, notes: list[str] | None = None) -> Any:
    """Returns an Arrow table as a data frame of pandas, without threads.

    Dates become `datetime64`, by which pandas can group and resample, or stay Python objects. Whole numbers that a column
    with nulls would round become pandas' own integers with nulls; those in lists and structs become Python's. Times of day
    that Python lacks become text. Infinite times become missing, and `notes` names their columns.
    """
    for at, field in enumerate(table.schema):
        original = table.column(at)
        column, had_infinity = arrow_values.without_infinity(original)
        if had_infinity and notes is not None:
            notes.append(arrow_values.infinity_note(field.name))
        column = arrow_values.with_text_times(column)
        if column is not original:
            table = table.set_column(at, field.name, column)
    frame = table.to_pandas(use_threads=False, date_as_object=keep_dates)
    for position, name in enumerate(_data_columns(table, frame)):
        series = _whole_numbers(table.column(name), frame.index, keep_dates)
        if series is not None:
            frame.isetitem(position, series)
    return frame


def _data_columns(table: Any, frame: Any) -> list[int]:
    """Returns the positions of a table's columns that are the columns of its data frame, and not in its index."""
    stored = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns", [])
    index = {name for name in stored if isinstance(name, str)}
    found = [at for at, name in enumerate(table.column_names) if name not in index]
    return found if len(found) == frame.shape[1] else []


def _whole_numbers(column: Any, index: Any, keep_dates: bool) -> Any:
    """Returns the series of a column whose whole numbers pandas would make floats; else None."""
    pandas, pyarrow = import_module("pandas"), import_module("pyarrow")
    if arrow_values.has_nested_integers(column.type):
        exact = column.to_pandas(use_threads=False, date_as_object=keep_dates, integer_object_nulls=True)
        return pandas.Series(exact.array, index=index)
    if not column.null_count or str(column.type) not in ("int64", "uint64"):
        return None
    try:
        column.cast(pyarrow.float64())
    except pyarrow.ArrowInvalid:
        kind = pandas.Int64Dtype() if str(column.type) == "int64" else pandas.UInt64Dtype()
        return pandas.Series(kind.__from_arrow__(column), index=index)
    return None
