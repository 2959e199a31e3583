"""Times that are dates: midnights as they are written, of a zone other than that of the buckets.

In buckets of days, such a time belongs to the day whose date it has. As an instant, it would fall on the day before
or after, beside the values of a neighboring day.
"""

from __future__ import annotations

import datetime
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cellblock_kernel.outputs.limits import many
from cellblock_kernel.timeseries import offsets
from cellblock_kernel.timeseries.quality import Quality

if TYPE_CHECKING:
    from cellblock_kernel.timeseries.buckets import Bucket

_TEXT = re.compile(r"\s*(\d{4}-\d{2}-\d{2})(?:[T ]00:00(?::00(?:[.,]0+)?)?\s*(Z|[+-]\d{2}:?\d{2})?)?\s*", re.ASCII)
_DAY = 86400 * 10**6


def as_dates(values: pd.Series, times: pd.DatetimeIndex, bucket: Bucket, label: str, quality: Quality) -> pd.DatetimeIndex:
    """Returns the times of a source, as midnights of the buckets' zone if they are dates.

    Midnights that are written in UTC, or as epochs, may well be instants: they stay, and only a note says so.
    """
    walls = times.tz_localize(None)
    if len(times) == 0 or bool((walls == walls.normalize()).all()):
        return times
    in_utc = not (times.as_unit("us").asi8 % _DAY).any()
    written = _written(values)
    if written is None and not in_utc:
        return times
    dates, zone = written or (times.tz_convert("UTC").tz_localize(None), "UTC")
    dated = offsets.localize(dates.as_unit(times.unit), times.tz)
    moved = int((bucket.floor(dated) != bucket.floor(times)).sum())
    if moved == 0:
        return times
    kept = in_utc and zone is not None
    what = f"{label}: {many(len(times), 'time')} are all midnights {f'of {zone}' if zone else 'without a zone'}"
    if kept:
        message = f'{what}; in {times.tz}, {moved} of them fall on another day: if they are dates, pass tz="UTC"'
    else:
        message = f"{what}, so they were taken as dates; as instants, {moved} of them would fall on another day in {times.tz}"
    quality.note("midnights_of_another_zone", message, label, zone=zone, moved=moved, taken_as_dates=not kept)
    return times if kept else dated


def _written(values: pd.Series) -> tuple[pd.DatetimeIndex, str | None] | None:
    """Returns the dates of a column and the zone written with them, if all its times are written as midnights."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.astype(values.cat.categories.dtype)
    if isinstance(values.dtype, pd.PeriodDtype):
        values = values.dt.to_timestamp()
    if isinstance(values.dtype, pd.DatetimeTZDtype) or pd.api.types.is_datetime64_dtype(values.dtype):
        index = pd.DatetimeIndex(values)
        dates = index.tz_localize(None)
        return (dates, None if index.tz is None else str(index.tz)) if bool((dates == dates.normalize()).all()) else None
    if pd.api.types.is_numeric_dtype(values.dtype) or _midnight(values.iloc[0]) is None:
        return None
    codes, cells = pd.factorize(values.to_numpy(dtype=object))
    read = [_midnight(cell) for cell in cells]
    found = [one for one in read if one is not None]
    zones = {zone for _, zone in found}
    if len(found) < len(read) or (None in zones and len(zones) > 1):
        return None
    dates = pd.DatetimeIndex(np.array([date for date, _ in found], dtype="datetime64[us]"))
    return dates[codes], ", ".join(sorted(zone for zone in zones if zone)) or None


def _midnight(cell: Any) -> tuple[str, str | None] | None:
    """Returns the date and the zone of a midnight."""
    if isinstance(cell, str):
        found = _TEXT.fullmatch(cell)
        return (found[1], found[2]) if found else None
    if isinstance(cell, np.datetime64):
        cell = pd.Timestamp(cell)
    if not isinstance(cell, datetime.date) or cell is pd.NaT:
        return None
    if isinstance(cell, datetime.datetime):
        if (cell.hour, cell.minute, cell.second, cell.microsecond) != (0, 0, 0, 0):
            return None
        return cell.date().isoformat(), None if cell.tzinfo is None else str(cell.tzinfo)
    return cell.isoformat(), None
