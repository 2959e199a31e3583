"""Reads times in any notation as instants in UTC."""

from __future__ import annotations

import datetime
import re
import warnings
from typing import Any

import numpy as np
import pandas as pd

from cellblock_kernel.outputs.limits import many
from cellblock_kernel.timeseries.quality import Quality, clipped

_EPOCH_TEXT = r"[+-]?\d{9,}(?:\.\d+)?"
_QUARTER = re.compile(r"(\d{4})-?Q([1-4])", re.IGNORECASE)
_WEEK = re.compile(r"(\d{4})-?W(\d{2})", re.IGNORECASE)
_DAY_OR_MONTH_FIRST = re.compile(r"\d{1,2}[/.\-]\d{1,2}[/.\-](\d{4}|\d{2})\b")
# Absolute numbers below each bound are of the unit: seconds until the year 5138, milliseconds and so on from 1973.
_UNITS = (("s", 1e11), ("ms", 1e14), ("us", 1e17), ("ns", np.inf))
_NUMERIC_KINDS = frozenset({"integer", "floating", "decimal", "mixed-integer-float", "integer-na"})
_TIME_KINDS = frozenset({"datetime", "datetime64", "date"})


def read(values: pd.Series, label: str, column: str, errors: str, quality: Quality) -> pd.DatetimeIndex:
    """Returns the instants of a column in UTC; `NaT` for invalid values if `errors` is `coerce`.

    Times without a zone are taken as UTC. Numbers are epochs; their magnitude decides the unit: seconds below 1e11, then
    milliseconds, microseconds, nanoseconds. The result counts microseconds, or nanoseconds where a value needs them.
    """
    values = values.reset_index(drop=True)
    instants = _instants(values, label, column, quality)
    bad = np.flatnonzero(instants.isna())
    if bad.size == 0:
        return instants
    first = int(bad[0])
    value = values.iloc[first]
    value = value.item() if isinstance(value, np.generic) and not isinstance(value, np.datetime64) else value
    shown = clipped(repr(value), 80)
    if errors == "raise":
        if isinstance(value, str) and _DAY_OR_MONTH_FIRST.match(value.strip()):
            raise ValueError(
                f"{label} has {shown} in row {first} of {column!r}, which may begin with the day or the month; "
                'parse the column first with pd.to_datetime(…, format="%d/%m/%Y")'
            )
        raise ValueError(
            f"{label} has no time in row {first} of {column!r}: {shown}; "
            'repair the row, or pass errors="coerce" to exclude such rows'
        )
    quality.note(
        "unreadable_times",
        f"{label}: {many(bad.size, 'row')} of {len(values)} left out: {column!r} holds no time, first in row {first}: {shown}",
        series=column,
        rows=int(bad.size),
        first_row=first,
    )
    return instants


def _instants(values: pd.Series, label: str, column: str, quality: Quality) -> pd.DatetimeIndex:
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype(values.cat.categories.dtype)
    if isinstance(values.dtype, pd.ArrowDtype) and not pd.api.types.is_numeric_dtype(values.dtype):
        values = values.astype(object)
    dtype = values.dtype
    if isinstance(dtype, pd.PeriodDtype):
        values = values.dt.to_timestamp()
        dtype = values.dtype
    if isinstance(dtype, pd.DatetimeTZDtype) or pd.api.types.is_datetime64_dtype(dtype):
        return _index(_of_times(values))
    if pd.api.types.is_bool_dtype(dtype):
        return _index(_nothing(len(values)))
    if pd.api.types.is_numeric_dtype(dtype):
        return _index(_of_numbers(values, label, column, quality))
    return _index(_of_objects(values.to_numpy(dtype=object), label, column, quality))


def _index(instants: np.ndarray) -> pd.DatetimeIndex:
    return pd.DatetimeIndex(instants).tz_localize("UTC")


def _nothing(count: int) -> np.ndarray:
    return np.full(count, np.datetime64("NaT", "us"), dtype="datetime64[us]")


def _of_times(values: Any) -> np.ndarray:
    """Returns UTC without a zone, in microseconds unless that would lose precision."""
    index = pd.DatetimeIndex(pd.to_datetime(values, utc=True, errors="coerce")).tz_localize(None)
    array = index.to_numpy()
    if index.unit != "ns":
        return array.astype("datetime64[us]")
    coarse = array.astype("datetime64[us]")
    fits = np.isnat(array) | (coarse.astype("datetime64[ns]") == array)
    return coarse if fits.all() else array


def _of_objects(cells: np.ndarray, label: str, column: str, quality: Quality) -> np.ndarray:
    kind = pd.api.types.infer_dtype(cells, skipna=True)
    if kind == "string":
        return _of_text(cells, label, column, quality)
    if kind in _NUMERIC_KINDS:
        return _of_numbers(pd.Series(cells), label, column, quality)
    if kind in _TIME_KINDS:
        return _of_times(cells)
    if kind == "period":
        return _of_times(pd.Series([None if cell is None or cell is pd.NaT else cell.to_timestamp() for cell in cells]))
    text = np.fromiter((isinstance(cell, str) for cell in cells), dtype=bool, count=len(cells))
    number = np.fromiter((_is_number(cell) for cell in cells), dtype=bool, count=len(cells))
    time = np.fromiter((hasattr(cell, "year") or isinstance(cell, np.datetime64) for cell in cells), dtype=bool, count=len(cells))
    parts = []
    for mask, reader in (
        (text, lambda part: _of_text(part, label, column, quality)),
        (number & ~text, lambda part: _of_numbers(pd.Series(part), label, column, quality)),
        (time, _of_times),
    ):
        if mask.any():
            parts.append((mask, reader(cells[mask])))
    return _joined(len(cells), parts)


def _is_number(cell: Any) -> bool:
    return not isinstance(cell, (bool, np.bool_)) and hasattr(cell, "__float__") and not isinstance(cell, np.datetime64)


def _joined(count: int, parts: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    unit = "ns" if any(part.dtype == np.dtype("datetime64[ns]") for _, part in parts) else "us"
    result = _nothing(count).astype(f"datetime64[{unit}]")
    for mask, part in parts:
        result[mask] = part.astype(result.dtype)
    return result


def _of_text(cells: np.ndarray, label: str, column: str, quality: Quality) -> np.ndarray:
    text = pd.Series(cells, dtype=object)
    text = text.where(text.notna(), "").astype(str).str.strip()
    # pandas reads these two as the current time.
    text = text.where(~text.str.lower().isin(["now", "today"]), "")
    instants = _of_times(pd.to_datetime(text, utc=True, format="ISO8601", errors="coerce"))
    left = np.isnat(instants) & (text != "").to_numpy()
    if not left.any():
        return instants
    numbers = left & text.str.fullmatch(_EPOCH_TEXT).to_numpy(dtype=bool)
    others = left & ~numbers
    parts = [(~left, instants[~left])]
    if numbers.any():
        parts.append((numbers, _of_numbers(pd.to_numeric(text[numbers]), label, column, quality)))
    if others.any():
        parts.append((others, _of_prose(text[others])))
    return _joined(len(text), parts)


def _of_prose(text: pd.Series) -> np.ndarray:
    """Reads dates in other notations; not those whose first number may be the day or the month."""
    plain = text.map(_iso_period)
    plain = plain.where(plain.str.contains(r"\d{4}", regex=True) & ~plain.str.match(_DAY_OR_MONTH_FIRST), "")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _of_times(pd.to_datetime(plain, utc=True, format="mixed", errors="coerce"))


def _iso_period(text: str) -> str:
    """Returns the first day of a quarter such as `2024-Q1` or of an ISO week such as `2024-W05`."""
    if quarter := _QUARTER.fullmatch(text):
        return f"{quarter[1]}-{int(quarter[2]) * 3 - 2:02}-01"
    if week := _WEEK.fullmatch(text):
        try:
            return datetime.date.fromisocalendar(int(week[1]), int(week[2]), 1).isoformat()
        except ValueError:
            return ""
    return text


def _of_numbers(values: pd.Series, label: str, column: str, quality: Quality) -> np.ndarray:
    """Reads epochs by magnitude, years, and dates like 20240131."""
    whole = pd.api.types.is_integer_dtype(values.dtype) and not values.hasnans
    numbers = values.to_numpy(dtype=np.int64 if whole else np.float64, **({} if whole else {"na_value": np.nan}))
    known = np.isfinite(numbers)
    if not known.any():
        return _nothing(len(numbers))
    guessed = _calendar_numbers(numbers, known)
    if guessed is not None:
        instants, what = guessed
        quality.note("times_guessed", f"{label}: the numbers of {column!r} were read as {what}, not as seconds since 1970", column)
        return instants
    # Checked before the conversion: values beyond 64-bit nanoseconds are not times.
    sizes = np.abs(np.where(known, numbers, 0).astype(np.float64))
    known &= sizes < 9.2e18
    units = np.digitize(sizes, [bound for _, bound in _UNITS[:-1]])
    largest = int(units[known].max(initial=0))
    # A number from the first years of an epoch is ambiguous; it gets the unit of its neighbors.
    units[sizes < 1e8] = largest
    parts = []
    for number, (unit, _) in enumerate(_UNITS):
        mask = known & (units == number)
        if mask.any():
            parts.append((mask, _of_epochs(numbers[mask], unit)))
    if len(parts) > 1:
        used = [_UNITS[number][0] for number in np.unique(units[known])]
        quality.note(
            "mixed_epoch_units",
            f"{label}: {column!r} mixes epochs in {' and '.join(used)}; each was read by its own magnitude",
            series=column,
            units=used,
        )
    return _joined(len(numbers), parts)


def _of_epochs(numbers: np.ndarray, unit: str) -> np.ndarray:
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    if unit == "ns":
        return _of_times(numbers.astype(np.int64).astype("datetime64[ns]"))
    factor = 10**6 // per_second
    micros = np.rint(numbers * factor) if numbers.dtype.kind == "f" else numbers * factor
    return micros.astype(np.int64).astype("datetime64[us]")


def _calendar_numbers(numbers: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, str] | None:
    some = numbers[known]
    if (some != np.floor(some)).any():
        return None
    if ((some >= 1900) & (some <= 2100)).all():
        pattern, what = "%Y", "years"
    elif ((some >= 19000101) & (some <= 21001231)).all():
        pattern, what = "%Y%m%d", "dates (YYYYMMDD)"
    else:
        return None
    dates = pd.to_datetime(pd.Series(some.astype(np.int64).astype(str)), format=pattern, utc=True, errors="coerce")
    return None if dates.isna().any() else (_joined(len(numbers), [(known, _of_times(dates))]), what)
