"""The matrix of a population: a row per period, a column per entity, NaN where nothing was observed."""

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cellblock_kernel.timeseries import buckets, duplicates, prepare
from cellblock_kernel.timeseries.prepare import Freq, Timed
from cellblock_kernel.timeseries.quality import Quality, clipped, listed
from cellblock_kernel.timeseries.sources import table

# 8 bytes each.
_MOST_CELLS = 1 << 27
_LABEL = "data"


@dataclass
class Matrix:
    """Levels of entities over time."""

    periods: pd.DatetimeIndex
    entities: list[Any]
    values: np.ndarray
    bucket: buckets.Bucket | None


def read(
    data: Any,
    *,
    time_col: str | None,
    entity_col: str | None,
    value_col: str | None,
    freq: Freq | None,
    policy: str,
    tz: str | datetime.tzinfo | None,
    errors: str,
    quality: Quality,
) -> Matrix:
    """Reads wide tables and long rows."""
    if not isinstance(policy, str):
        raise TypeError(f"duplicates is a {type(policy).__name__}; expected one of {', '.join(duplicates.POLICIES)}")
    duplicates.check(policy)
    whole = table(data, _LABEL)
    for column in (entity_col, value_col):
        if column is not None and column not in whole.columns and len(whole):
            raise ValueError(f"{_LABEL} has no column {column!r}; it has {listed(whole.columns)}")
    source = prepare.timed(whole, time_col, _LABEL, buckets.zone(tz), errors, quality)
    if len(source.times) == 0:
        quality.note("empty_source", f"{_LABEL} has no rows")
        found = Matrix(source.times, [], np.empty((0, 0)), None)
    else:
        columns = _long_columns(source, entity_col, value_col)
        if columns is None:
            found = _wide(source, value_col, freq, policy, quality)
        else:
            found = _long(source, *columns, freq, policy, errors, quality)
    periods = found.periods.rename(source.name)
    found.periods = periods.tz_localize(None) if tz is None else periods
    return found


def _long_columns(source: Timed, entity_col: str | None, value_col: str | None) -> tuple[Any, Any] | None:
    """The columns of entity and value in long rows; `None` if the table is wide."""
    rest = source.table
    if entity_col is not None and entity_col == value_col:
        raise ValueError(f"entity_col and value_col are both {entity_col!r}")
    texts = [column for column in _of_kind(rest, _is_label) if column != value_col]
    numbers = [column for column in _of_kind(rest, _is_number) if column != entity_col]
    # Many APIs return numbers as text; that matters only where no column holds numbers.
    spelled = [] if numbers else [column for column in texts if column != entity_col and _spells_numbers(rest[column])]
    if entity_col is None and len(texts) == 2 and len(spelled) == 1:
        texts = [column for column in texts if column not in spelled]
    if entity_col is None:
        if not texts or not (value_col is not None or source.times.has_duplicates):
            return None
        if len(texts) > 1 or (value_col is None and len(numbers or spelled) != 1):
            raise ValueError(
                f"{_LABEL} repeats times beside the text of {listed(texts)}: name the columns with entity_col= and value_col=, "
                "or leave the text out if each numeric column is an entity"
            )
        entity_col = texts[0]
    if value_col is None:
        numbers = [column for column in numbers if column != entity_col] or [one for one in spelled if one != entity_col]
        if len(numbers) != 1:
            has = f"several numeric columns, {listed(numbers)}" if numbers else f"no numeric column beside {entity_col!r}"
            raise ValueError(f"{_LABEL} has {has}; choose with value_col=")
        value_col = numbers[0]
    return entity_col, value_col


def _wide(source: Timed, value_col: str | None, freq: Freq | None, policy: str, quality: Quality) -> Matrix:
    rest = source.table if value_col is None else source.table[[value_col]]
    chosen = _of_kind(rest, _is_number)
    ignored = [column for column in rest.columns if column not in set(chosen)] if len(chosen) < len(rest.columns) else []
    if not chosen:
        kinds = ", ".join(f"{clipped(str(column), 40)} ({rest[column].dtype})" for column in rest.columns[:8])
        raise ValueError(
            f"{_LABEL} has no numeric column beside its time, only {kinds or 'nothing'}; text must become numbers first"
        )
    if ignored:
        quality.note(
            "ignored_columns",
            f"{_LABEL}: {listed(ignored)} hold no numbers and are no entities; convert them first if they should be",
            columns=[str(column) for column in ignored[:50]],
        )
    numbers = rest if len(chosen) == len(rest.columns) else rest[chosen]
    values = _floats(numbers)
    values = _without_infinities(values, chosen, quality)
    bucket = prepare.grid([source], freq, [prepare.gaps_of_columns(source.times, ~np.isnan(values[:, :50]))], quality)
    floored = bucket.floor(source.times) if bucket else source.times
    if not (source.times.is_monotonic_increasing and floored.is_monotonic_increasing and floored.is_unique):
        frame = pd.DataFrame(values, columns=pd.Index(chosen, dtype=object))
        frame = duplicates.fold(frame, source.times, floored, policy, _LABEL, quality)
        floored, values = pd.DatetimeIndex(frame.index), frame.to_numpy(dtype=np.float64)
    return Matrix(floored, chosen, values, bucket)


def _long(source: Timed, entity_col: Any, value_col: Any, freq: Freq | None, policy: str, errors: str, quality: Quality) -> Matrix:
    codes, entities = pd.factorize(source.table[entity_col].to_numpy(), use_na_sentinel=True)
    nameless = np.flatnonzero(codes < 0)
    if nameless.size:
        message = f"{nameless.size} of {len(codes)} rows have no {entity_col!r}, the first is row {nameless[0]}"
        if errors == "raise":
            raise ValueError(f'{message}; repair them, or pass errors="coerce" to leave them out')
        quality.note("unnamed_rows", f"{message}; they were left out", rows=int(nameless.size))
    values = _without_infinities(_numbers(source.table[value_col], value_col, quality)[:, None], [value_col], quality)[:, 0]
    named = codes >= 0
    codes, values, times = codes[named], values[named], source.times[named]
    bucket = prepare.grid([Timed(source.table, times, source.name)], freq, [_gaps_of_each(codes, times, values)], quality)
    floored = bucket.floor(times) if bucket else times
    rows, periods = pd.factorize(floored, sort=True)
    if len(periods) * len(entities) > _MOST_CELLS:
        raise ValueError(
            f"{len(entities):,} entities in {len(periods):,} periods are more than {_MOST_CELLS:,} cells; choose a coarser freq="
        )
    matrix = np.full((len(periods), len(entities)), np.nan)
    cells = rows.astype(np.int64) * len(entities) + codes

    def name(cell: int) -> str:
        return f"{entities[cell % len(entities)]!r} in the bucket {periods[cell // len(entities)]}"

    folded, of = duplicates.fold_cells(cells, values, times, policy, _LABEL, name, quality)
    matrix.ravel()[of] = folded
    return Matrix(pd.DatetimeIndex(periods), list(entities), matrix, bucket)


def _gaps_of_each(codes: np.ndarray, times: pd.DatetimeIndex, values: np.ndarray) -> np.ndarray:
    """The distances between samples of the same entity: entities may report at different seconds."""
    told = ~np.isnan(values)
    codes, micros = codes[told], times.as_unit("us").asi8[told]
    order = np.lexsort((micros, codes))
    return np.diff(micros[order])[np.diff(codes[order]) == 0]


def _numbers(values: pd.Series, name: Any, quality: Quality) -> np.ndarray:
    """The values of long rows; numbers that arrive as text, as in many APIs, are taken as numbers."""
    if _is_number(values):
        return _floats(values.to_frame())[:, 0]
    if pd.api.types.is_bool_dtype(values.dtype):
        raise ValueError(f"{name!r} of {_LABEL} holds true and false, no numbers; choose another value_col=")
    cells = values.to_numpy(dtype=object)
    numbers = pd.to_numeric(pd.Series(cells), errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    flags = np.fromiter((isinstance(cell, bool | np.bool_) for cell in cells), dtype=bool, count=len(cells))
    bad = np.flatnonzero((np.isnan(numbers) & values.notna().to_numpy()) | flags)
    if bad.size:
        raise ValueError(
            f"{name!r} of {_LABEL} holds no number in row {bad[0]}: {clipped(repr(cells[bad[0]]), 80)} ({bad.size} such rows); "
            "make them numbers or None first"
        )
    quality.note("numbers_from_text", f"{_LABEL}: {name!r} is text and was read as numbers", series=str(name))
    return numbers


def _floats(numbers: pd.DataFrame) -> np.ndarray:
    if all(isinstance(dtype, np.dtype) and dtype.kind in "iuf" for dtype in numbers.dtypes.unique()):
        return numbers.to_numpy(dtype=np.float64)
    return np.column_stack(
        [pd.to_numeric(numbers[column]).to_numpy(dtype=np.float64, na_value=np.nan) for column in numbers.columns]
    )


def _without_infinities(values: np.ndarray, names: list[Any], quality: Quality) -> np.ndarray:
    """Infinite values are no levels: they count as not observed."""
    # The sum tells of most matrices at once that they hold none.
    with np.errstate(invalid="ignore", over="ignore"):
        smallest, largest = (np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)) if values.size else (0.0, 0.0)
    if not (np.isinf(smallest) or np.isinf(largest)):
        return values
    infinite = np.isinf(values)
    first = names[int(np.flatnonzero(infinite.any(axis=0))[0])]
    quality.note(
        "infinite_values",
        f"{_LABEL}: {int(infinite.sum())} infinite values, the first in {clipped(repr(first), 60)}, count as not observed",
        count=int(infinite.sum()),
    )
    return np.where(infinite, np.nan, values)


def _of_kind(table: pd.DataFrame, judge: Callable[[pd.Series], bool]) -> list[Any]:
    """The columns of a kind. One of those that share a dtype is asked for all of them, unless it says nothing about values."""
    known: dict[Any, bool] = {}
    found = []
    for number, (column, dtype) in enumerate(zip(table.columns, table.dtypes, strict=True)):
        if pd.api.types.is_object_dtype(dtype):
            fits = judge(table.iloc[:, number])
        else:
            fits = known[dtype] if dtype in known else known.setdefault(dtype, judge(table.iloc[:, number]))
        if fits:
            found.append(column)
    return found


def _is_number(values: pd.Series) -> bool:
    """Whether a column holds numbers: by its dtype, or object by object (big integers, decimals, nothing at all)."""
    dtype = values.dtype
    if pd.api.types.is_bool_dtype(dtype) or pd.api.types.is_complex_dtype(dtype):
        return False
    if pd.api.types.is_numeric_dtype(dtype):
        return True
    return pd.api.types.is_object_dtype(dtype) and pd.api.types.infer_dtype(values, skipna=True) in {
        "integer", "floating", "decimal", "mixed-integer-float", "empty",
    }  # fmt: skip


def _is_label(values: pd.Series) -> bool:
    """Whether a column may name entities."""
    if isinstance(values.dtype, pd.CategoricalDtype) or pd.api.types.is_string_dtype(values.dtype):
        return not _is_number(values)
    return pd.api.types.is_object_dtype(values.dtype) and pd.api.types.infer_dtype(values, skipna=True) == "string"


def _spells_numbers(values: pd.Series) -> bool:
    told = values[values.notna()]
    return bool(len(told)) and bool(pd.to_numeric(told.astype(object), errors="coerce").notna().all())
