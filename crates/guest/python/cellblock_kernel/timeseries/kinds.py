"""The content of a table's columns, which decides whether it is wide or has long rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from cellblock_kernel.timeseries.clock import is_named_as_time, tells_time
from cellblock_kernel.timeseries.prepare import Timed
from cellblock_kernel.timeseries.quality import Quality, listed


def long_columns(
    source: Timed, entity_col: str | None, value_col: str | None, label: str, quality: Quality
) -> tuple[Any, Any] | None:
    """Returns the columns of entity and value in long rows; `None` if the table is wide."""
    rest = source.table
    if entity_col is not None and entity_col == value_col:
        raise ValueError(f"entity_col and value_col are both {entity_col!r}")
    texts = [column for column in of_kind(rest, _is_label) if column not in (entity_col, value_col)]
    numbers = [column for column in measured(rest) if column != entity_col]
    # Many APIs return numbers as text; that only matters if no column holds numbers.
    spelled = [] if numbers else [column for column in texts if _spells_numbers(rest[column])]
    values = [value_col] if value_col is not None else numbers or spelled
    if entity_col is None:
        entities = [column for column in texts if column not in spelled or column not in values]
        if not _may_be_long(source, entities, bool(spelled) or value_col is not None):
            return None
        if len(entities) != 1 or len(values) != 1:
            raise ValueError(
                f"{label} may have long rows, by the text of {listed(texts)}: name the columns with entity_col= and value_col=, or "
                "exclude the text if each numeric column is an entity"
            )
        quality.note("long_rows_inferred", f"{label}: each row is the value {values[0]!r} of the entity {entities[0]!r}")
        return entities[0], values[0]
    if len(values) != 1:
        has = f"several columns of numbers, {listed(values)}" if values else f"no column of numbers beside {entity_col!r}"
        raise ValueError(f"{label} has {has}; choose with value_col=")
    return entity_col, values[0]


def _may_be_long(source: Timed, entities: list[Any], sure: bool) -> bool:
    """Returns whether text names entities. It does not if each row has its own time and text: these are
    remarks."""
    if not entities:
        return False
    return sure or source.times.has_duplicates or any(not source.table[column].is_unique for column in entities)


def measured(table: pd.DataFrame) -> list[Any]:
    """Returns the columns of numbers, without those that hold times."""
    return [column for column in of_kind(table, is_number) if not (is_named_as_time(column) and tells_time(column, table[column]))]


def of_kind(table: pd.DataFrame, judge: Callable[[pd.Series], bool]) -> list[Any]:
    """Returns the columns of a kind. Columns with the same dtype are checked once, unless the dtype says
    nothing about values."""
    known: dict[Any, bool] = {}
    found = []
    for number, (column, dtype) in enumerate(zip(table.columns, table.dtypes)):
        if pd.api.types.is_object_dtype(dtype):
            fits = judge(table.iloc[:, number])
        else:
            fits = known[dtype] if dtype in known else known.setdefault(dtype, judge(table.iloc[:, number]))
        if fits:
            found.append(column)
    return found


def is_number(values: pd.Series) -> bool:
    """Returns whether a column holds numbers: by its dtype, or object by object (big integers, decimals,
    nulls)."""
    dtype = values.dtype
    if pd.api.types.is_bool_dtype(dtype) or pd.api.types.is_complex_dtype(dtype):
        return False
    if pd.api.types.is_numeric_dtype(dtype):
        return True
    return pd.api.types.is_object_dtype(dtype) and pd.api.types.infer_dtype(values, skipna=True) in {
        "integer", "floating", "decimal", "mixed-integer-float", "empty",
    }  # fmt: skip


def _is_label(values: pd.Series) -> bool:
    """Returns whether a column may name entities."""
    if isinstance(values.dtype, pd.CategoricalDtype) or pd.api.types.is_string_dtype(values.dtype):
        return not is_number(values)
    return bool(pd.api.types.is_object_dtype(values.dtype) and pd.api.types.infer_dtype(values, skipna=True) == "string")


def _spells_numbers(values: pd.Series) -> bool:
    known = values[values.notna()]
    return bool(len(known)) and bool(pd.to_numeric(known.astype(object), errors="coerce").notna().all())
