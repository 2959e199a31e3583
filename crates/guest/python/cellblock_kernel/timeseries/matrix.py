"""The matrix of a population: a row per period, a column per entity, NaN where there is no observation."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from cellblock_kernel.outputs.limits import many
from cellblock_kernel.outputs.primitive import with_article
from cellblock_kernel.timeseries import buckets, duplicates, prepare
from cellblock_kernel.timeseries.kinds import is_number, long_columns, measured, of_kind
from cellblock_kernel.timeseries.prepare import Freq, Timed
from cellblock_kernel.timeseries.quality import Quality, clipped, listed
from cellblock_kernel.timeseries.sources import table

# Maximum number of cells, 8 bytes each.
_MOST_CELLS = 1 << 27
# Cells that are searched for samples at once.
_AT_ONCE = 1 << 22
_LABEL = "data"

# Entities by number, with the distances in microseconds between samples of each.
Gaps = tuple[np.ndarray, np.ndarray]


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
        raise TypeError(f"duplicates is {with_article(type(policy).__name__)}; expected one of {', '.join(duplicates.POLICIES)}")
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
        columns = long_columns(source, entity_col, value_col, _LABEL, quality)
        if columns is None:
            found = _wide(source, value_col, freq, policy, quality)
        else:
            found = _long(source, *columns, freq, policy, errors, quality)
    periods = found.periods.rename(source.name)
    found.periods = periods.tz_localize(None) if tz is None else periods
    return found


def _wide(source: Timed, value_col: str | None, freq: Freq | None, policy: str, quality: Quality) -> Matrix:
    rest = source.table if value_col is None else source.table[[value_col]]
    chosen = measured(rest) if value_col is None else of_kind(rest, is_number)
    ignored = [column for column in rest.columns if column not in set(chosen)] if len(chosen) < len(rest.columns) else []
    if not chosen:
        kinds = ", ".join(f"{clipped(str(column), 40)} ({rest[column].dtype})" for column in rest.columns[:8])
        raise ValueError(
            f"{_LABEL} has no numeric column beside its time, only {kinds or 'nothing'}; text must become numbers first"
        )
    if ignored:
        quality.note(
            "ignored_columns",
            f"{_LABEL}: {listed(ignored)} are not entities: they do not hold numbers, or hold times; "
            "convert text first if it should be",
            columns=[str(column) for column in ignored[:20]],
        )
    numbers = rest if len(chosen) == len(rest.columns) else rest[chosen]
    values = _floats(numbers)
    values = _without_infinities(values, chosen, quality)
    bucket = _grid(source, freq, chosen, _samples_of_columns(source.times, ~np.isnan(values)), quality)
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
        message = f"{many(nameless.size, 'row')} of {len(codes)} without {entity_col!r}, the first is row {nameless[0]}"
        if errors == "raise":
            raise ValueError(f'{message}; repair them, or pass errors="coerce" to exclude them')
        quality.note("unnamed_rows", f"{message}; they were excluded", rows=int(nameless.size))
    values = _without_infinities(_numbers(source.table[value_col], value_col, quality)[:, None], [value_col], quality)[:, 0]
    named = codes >= 0
    codes, values = codes[named], values[named]
    rest = replace(source, times=source.times[named], written=source.written[named])
    samples = [_samples_of_rows(codes, rest.times, values)]
    bucket = _grid(rest, freq, list(entities), samples, quality)
    times = rest.times
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


def _samples_of_rows(codes: np.ndarray, times: pd.DatetimeIndex, values: np.ndarray) -> Gaps:
    """Returns the distances between samples of the same entity: entities may report at different seconds."""
    known = ~np.isnan(values)
    codes, micros = codes[known], times.as_unit("us").asi8[known]
    order = np.lexsort((micros, codes))
    codes, micros = codes[order], micros[order]
    same = np.diff(codes) == 0
    return codes[1:][same], np.diff(micros)[same]


def _samples_of_columns(times: pd.DatetimeIndex, known: np.ndarray) -> Iterator[Gaps]:
    """Does the same for columns, several at a time."""
    micros = times.as_unit("us").asi8
    if not times.is_monotonic_increasing:
        order = np.argsort(micros)
        micros, known = micros[order], known[order]
    whole = known.all(axis=0)
    if whole.any():
        # All of them have the same distances.
        yield np.full(max(len(micros) - 1, 0), int(whole.argmax())), np.diff(micros)
    others = np.flatnonzero(~whole)
    many_columns = max(_AT_ONCE // max(len(micros), 1), 1)
    for first in range(0, len(others), many_columns):
        columns = others[first : first + many_columns]
        codes, rows = np.nonzero(known[:, columns].T)
        same = np.diff(codes) == 0
        yield columns[codes[1:][same]], np.diff(micros[rows])[same]


def _grid(
    source: Timed, freq: Freq | None, entities: list[Any], samples: Iterable[Gaps], quality: Quality
) -> buckets.Bucket | None:
    """Returns the requested bucket, or one of the coarsest step of any entity, so that none disappears between
    its samples."""
    pooled, own = [], []
    for owners, gaps in samples:
        pooled.append(gaps)
        own.append(buckets.regular(owners, gaps))
    own = pd.concat(own)
    steps = buckets.steps([np.concatenate(pooled)])
    steps += [one for one in map(buckets.usual, own.unique()) if one is not None]
    bucket = prepare.grid([source], freq, steps, quality)
    period = bucket or (buckets.of_micros(max(steps)) if steps else None)
    slower = own[own > 1.5 * period.longest] if period else own[:0]
    if len(slower):
        names = [entities[one] for one in slower.index]
        every = datetime.timedelta(microseconds=float(slower.max()))
        quality.note(
            "slower_entities",
            f"{listed(names)} report less often than every {period} (every {every} at most), so they count as gone between their "
            "samples; choose a coarser freq=",
            entities=[str(one) for one in names[:20]],
            count=len(names),
            period=str(period),
        )
    return bucket


def _numbers(values: pd.Series, name: Any, quality: Quality) -> np.ndarray:
    """Returns the values of long rows; numbers as text, as in many APIs, count as numbers."""
    if is_number(values):
        return _floats(values.to_frame())[:, 0]
    if pd.api.types.is_bool_dtype(values.dtype):
        raise ValueError(f"{name!r} of {_LABEL} holds true and false, no numbers; choose another value_col=")
    cells = values.to_numpy(dtype=object)
    numbers = pd.to_numeric(pd.Series(cells), errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    flags = np.fromiter((isinstance(cell, (bool, np.bool_)) for cell in cells), dtype=bool, count=len(cells))
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
    """Turns infinite values, which are not levels, into missing observations."""
    # For most matrices, the sum alone shows that there are none.
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
