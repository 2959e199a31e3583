"""Puts sources onto buckets: reads and floors times, and merges to one row per bucket."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Optional, Union

import numpy as np
import pandas as pd

from cellblock_kernel.outputs.limits import many
from cellblock_kernel.timeseries import buckets, clock, duplicates, instants, midnights
from cellblock_kernel.timeseries.buckets import Bucket
from cellblock_kernel.timeseries.duplicates import Policy
from cellblock_kernel.timeseries.quality import Quality, listed
from cellblock_kernel.timeseries.sources import Source

Freq = Union[str, datetime.timedelta]
TimeColumn = Union[str, Sequence[Optional[str]], Mapping[str, str]]
# Maximum number of columns whose sample distances are checked; more add nothing.
_ASKED = 50


@dataclass
class Timed:
    """A table with its instants, in the zone of the buckets. The rows keep their order."""

    table: pd.DataFrame
    times: pd.DatetimeIndex
    name: str
    label: str
    written: pd.Series
    """The times as they were passed."""

    def gaps(self) -> np.ndarray:
        """Returns the distances between its samples, in microseconds."""
        numbers = self.table.select_dtypes("number").iloc[:, :_ASKED]
        known = numbers if numbers.shape[1] else self.table.iloc[:, :_ASKED]
        return gaps_of_columns(self.times, known.notna().to_numpy())


def gaps_of_columns(times: pd.DatetimeIndex, known: np.ndarray) -> np.ndarray:
    """Returns the distances between the samples of each column, in microseconds; a null is a placeholder, not a
    sample."""
    micros = times.as_unit("us").asi8
    if not times.is_monotonic_increasing:
        order = np.argsort(micros)
        micros, known = micros[order], known[order]
    if known.all():
        return np.diff(micros)
    return np.concatenate([np.diff(micros[column]) for column in known.T[:_ASKED]])


def timed(
    table: pd.DataFrame, time_col: str | None, label: str, zone: datetime.tzinfo | None, errors: str, quality: Quality
) -> Timed:
    """Finds and reads the times of a table; rows without one are an error, or excluded with a note."""
    if errors not in ("raise", "coerce"):
        raise ValueError(f'errors {errors!r} is neither "raise" nor "coerce"')
    if len(table) == 0:
        return _without_rows(table, time_col, label, zone)
    values, name, rest = clock.find(table, time_col, label)
    times = instants.read(values, label, name, errors, quality)
    known = times.notna()
    if not known.all():
        times, rest, values = times[known], rest[known], values[known]
    return Timed(rest, times.tz_convert(zone or datetime.timezone.utc), name, label, values)


def _without_rows(table: pd.DataFrame, time_col: str | None, label: str, zone: datetime.tzinfo | None) -> Timed:
    try:
        _, name, rest = clock.find(table, time_col, label)
    except ValueError:
        name, rest = time_col or "time", table
    times = pd.DatetimeIndex([], dtype="datetime64[us, UTC]").tz_convert(zone or datetime.timezone.utc)
    return Timed(rest, times, name, label, pd.Series(times))


def grid(sources: list[Timed], freq: Freq | None, steps: list[int], quality: Quality) -> Bucket | None:
    """Returns the requested bucket, or the common one of the sources by their steps. In buckets of days, times that
    are dates become days of the buckets' zone."""
    bucket = buckets.parse(freq) if freq is not None else buckets.common(steps, [one.times for one in sources])
    if bucket is not None and bucket.longest % buckets.DAY == 0:
        for one in sources:
            one.times = midnights.as_dates(one.written, one.times, bucket, one.label, quality)
    if freq is not None or bucket is None:
        return bucket
    bucket = buckets.common(steps, [one.times for one in sources])
    if bucket is not None:
        moved = sum(int((bucket.floor(one.times) != one.times).sum()) for one in sources)
        quality.note(
            "buckets_inferred",
            f"{moved} of {sum(len(one.times) for one in sources)} times were floored to buckets of {bucket}, the coarsest step by "
            "which the data are reported; choose with freq=",
            freq=str(bucket),
            moved=moved,
        )
    return bucket


@dataclass
class Prepared:
    """The sources on buckets, in the given order; each has a sorted, unique index, all in the same unit."""

    tables: list[pd.DataFrame]
    bucket: Bucket | None
    name: str


def prepare(
    sources: list[Source],
    *,
    time_col: TimeColumn | None,
    freq: Freq | None,
    duplicates: Policy,
    tz: str | datetime.tzinfo | None,
    errors: str,
    quality: Quality,
) -> Prepared:
    """Reads, floors and merges all sources."""
    _check_policy(duplicates, sources)
    zone = buckets.zone(tz)
    wanted = _time_columns(time_col, sources)
    read = [timed(one.table, column, one.label, zone, errors, quality) for one, column in zip(sources, wanted)]
    for source, one in zip(sources, read):
        if len(one.times) == 0:
            quality.note("empty_source", f"{source.label} has no rows", source.name)
    bucket = grid(read, freq, buckets.steps([one.gaps() for one in read]), quality)
    folded = []
    for source, one in zip(sources, read):
        floored = bucket.floor(one.times) if bucket else one.times
        folded.append(fold_into(one, floored, duplicates, source.label, quality))
    unit = "ns" if any(one.index.unit == "ns" for one in folded) else "us"
    names = {one.name for one in read}
    name = names.pop() if len(names) == 1 else "time"
    for one in folded:
        one.index = one.index.as_unit(unit).rename(name)
        if tz is None:
            one.index = one.index.tz_localize(None)
    return Prepared(folded, bucket, name)


def fold_into(source: Timed, floored: pd.DatetimeIndex, policy: Policy, label: str, quality: Quality) -> pd.DataFrame:
    """Returns one row per bucket, without the diagnostics of an earlier call."""
    folded = duplicates.fold(source.table, source.times, floored, policy, label, quality)
    folded = folded.copy(deep=False)
    folded.attrs = {}
    return folded


def _time_columns(time_col: TimeColumn | None, sources: list[Source]) -> list[str | None]:
    if time_col is None or isinstance(time_col, str):
        return [time_col] * len(sources)
    if isinstance(time_col, Mapping):
        unknown = set(time_col) - {one.name for one in sources}
        if unknown:
            raise ValueError(f"time_col names {listed(sorted(unknown))}, which is not a source")
        return [time_col.get(one.name) if one.name is not None else None for one in sources]
    if len(time_col) != len(sources):
        given = f"time_col has {many(len(time_col), 'entry', 'entries')} for {many(len(sources), 'source')}"
        raise ValueError(f"{given}; give one name, or one per source")
    return list(time_col)


def _check_policy(policy: Policy, sources: list[Source]) -> None:
    duplicates.check(policy)
    if isinstance(policy, Mapping):
        columns = {str(column) for one in sources for column in one.table.columns}
        unknown = [column for column in policy if column not in columns]
        if unknown and any(len(one.table) for one in sources):
            raise ValueError(
                f"duplicates names {listed(unknown)}, which is a column of no source; there are {listed(sorted(columns))}"
            )


def note_coverage(
    labels: list[str], names: list[str | None], tables: list[pd.DataFrame], on: pd.DatetimeIndex, quality: Quality, always: bool
) -> None:
    """Notes, for each source, the share of buckets in which it has a sample."""
    for label, name, one in zip(labels, names, tables):
        known = one.index[one.notna().any(axis=1).to_numpy()].intersection(on)
        if len(on) and (always or len(known) < len(on)):
            span = f", from {known[0]} to {known[-1]}" if len(known) else ""
            quality.note(
                "source_coverage",
                f"{label} has samples in {len(known)} of {len(on)} buckets ({len(known) / len(on):.0%}){span}",
                series=name or label,
                buckets=len(on),
                covered=len(known),
                share=round(len(known) / len(on), 4),
            )
