"""Finds the time column of a table."""

from __future__ import annotations

from typing import Any

import pandas as pd

from cellblock_kernel.timeseries import instants
from cellblock_kernel.timeseries.quality import Quality, listed

_NAMES = frozenset({
    "timestamp", "time", "date", "datetime", "ts", "t", "period", "bucket", "day", "hour", "week", "month", "quarter", "year",
    "epoch", "unix", "timestamps", "dates", "times",
})  # fmt: skip
_ENDS = (
    "_time",
    "_timestamp",
    "_date",
    "_datetime",
    "_ts",
    "_at",
    "_day",
    "_hour",
    "_week",
    "_month",
    "_ms",
    "_us",
    "_ns",
    "_epoch",
    "_unix",
)
_SAMPLE = 5
# Names of calendar fields, with their valid numbers.
_FIELDS = {"year": 9999, "quarter": 4, "month": 12, "week": 53, "day": 366, "hour": 23}


def find(table: pd.DataFrame, wanted: str | None, label: str) -> tuple[pd.Series, str, pd.DataFrame]:
    """Returns the times of a table, their name, and the table without them.

    Without `wanted`, they are, in this order: an index of times; the only column of a time dtype; the only one
    with a usual name, then with a usual ending, that holds times; the only one of dates as text. Several
    equally good candidates are an error.
    """
    if wanted is not None:
        return _wanted(table, wanted, label)
    index = table.index
    if isinstance(index, (pd.DatetimeIndex, pd.PeriodIndex)):
        return _of_index(table)
    typed = [name for name in table.columns if _is_time_dtype(table[name].dtype)]
    named = [name for name in table.columns if _plain(name) in _NAMES]
    # A year or an hour beside a date is a part of it; alone it is the time.
    named = [name for name in named if not _is_part(name, table[name])] or named
    usual = [name for name in named if _holds_times(table[name])]
    ending = [name for name in table.columns if _plain(name).endswith(_ENDS) and _ends_as_time(name, table[name])]
    both = [name for name in typed if name in usual]
    for found in (both, typed, usual, ending):
        if len(found) == 1:
            return _of_column(table, found[0])
        if found:
            raise ValueError(f"{label} has several columns that may be its time: {listed(found)}; choose with time_col=")
    if not isinstance(index, (pd.RangeIndex, pd.MultiIndex)) and (index.dtype.kind in "OT" or _plain(index.name) in _NAMES):
        values = index.to_series()
        if _plain(index.name) in _NAMES or _holds_dates(values):
            return _of_index(table)
    dated = [name for name in table.columns if _holds_dates(table[name])]
    if len(dated) == 1:
        return _of_column(table, dated[0])
    if dated:
        raise ValueError(f"{label} has several columns that may be its time: {listed(dated)}; choose with time_col=")
    if len(named) == 1:
        # Its values are not times: reading them raises an error that names the first one.
        return _of_column(table, named[0])
    raise ValueError(
        f"{label} has no column of times among {listed(table.columns) or 'none'}; name it with time_col=, or set a DatetimeIndex"
    )


def _ends_as_time(name: Any, values: pd.Series) -> bool:
    """Returns whether a column with a time-like name ending holds times; numbers must be epochs (`volume_day`
    also exists)."""
    return tells_time(name, values) if pd.api.types.is_numeric_dtype(values.dtype) else _holds_times(values)


def _is_part(name: Any, values: pd.Series) -> bool:
    """Returns whether a column holds the numbers of a calendar field, or only looks like a time because of a
    capital letter."""
    numeric = pd.api.types.is_numeric_dtype(values.dtype)
    return numeric and (_plain(name) in _FIELDS or (len(str(name)) == 1 and str(name).isupper()))


def is_named_as_time(name: Any) -> bool:
    """Returns whether a name says that a column holds times; capitalized names more likely name an entity."""
    plain = _plain(name)
    return (plain in _NAMES or plain.endswith(_ENDS)) and not str(name).isupper()


def tells_time(name: Any, values: pd.Series) -> bool:
    """Returns whether a column of numbers holds times rather than measurements: epochs or calendar fields, with
    such a name."""
    if not is_named_as_time(name):
        return False
    plain = _plain(name)
    known = values[values.notna()].astype("float64")
    if len(known) == 0 or (known != known.round()).any():
        return False
    if plain in _FIELDS:
        return bool(known.between(0, _FIELDS[plain]).all())
    # The years 1990 to 2100 in each unit.
    return any(known.between(631_152_000 * unit, 4_102_444_800 * unit).all() for unit in (1, 10**3, 10**6, 10**9))


def _wanted(table: pd.DataFrame, wanted: str, label: str) -> tuple[pd.Series, str, pd.DataFrame]:
    if wanted in table.columns:
        return _of_column(table, wanted)
    if wanted == table.index.name or (wanted == "index" and isinstance(table.index, (pd.DatetimeIndex, pd.PeriodIndex))):
        return _of_index(table)
    raise ValueError(f"{label} has no column {wanted!r}; it has {listed(table.columns)}")


def _of_column(table: pd.DataFrame, name: Any) -> tuple[pd.Series, str, pd.DataFrame]:
    return table[name], str(name), table.drop(columns=[name])


def _of_index(table: pd.DataFrame) -> tuple[pd.Series, str, pd.DataFrame]:
    return table.index.to_series(), "time" if table.index.name is None else str(table.index.name), table


def _plain(name: Any) -> str:
    return name.strip().lower().replace(" ", "_") if isinstance(name, str) else ""


def _is_time_dtype(dtype: Any) -> bool:
    if isinstance(dtype, pd.ArrowDtype):
        return dtype.kind == "M" or str(dtype).startswith("date")
    return isinstance(dtype, (pd.DatetimeTZDtype, pd.PeriodDtype)) or pd.api.types.is_datetime64_dtype(dtype)


def _holds_times(values: pd.Series) -> bool:
    """Returns whether the first values, if any, are times."""
    some = values[values.notna()].iloc[:_SAMPLE] if len(values) else values
    return bool(len(some) == 0 or instants.read(some, "", "", "coerce", Quality()).notna().any())


def _holds_dates(values: pd.Series) -> bool:
    """Returns whether a column of text or of Python's dates holds times; numbers alone do not count."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype(values.cat.categories.dtype)
    if pd.api.types.is_numeric_dtype(values.dtype):
        return False
    some = values[values.notna()].iloc[:_SAMPLE]
    if len(some) == 0 or pd.api.types.infer_dtype(some, skipna=True) not in {"string", "date", "datetime", "datetime64", "period"}:
        return False
    return bool(instants.read(some, "", "", "coerce", Quality()).notna().all())
