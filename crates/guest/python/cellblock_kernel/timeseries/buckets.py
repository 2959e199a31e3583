"""Buckets of time: their frequencies, and the common bucket of several sources."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from cellblock_kernel.outputs.primitive import with_article
from cellblock_kernel.timeseries import offsets

_MICROS = {"us": 1, "ms": 10**3, "s": 10**6, "min": 60 * 10**6, "h": 3600 * 10**6, "D": 86400 * 10**6}
DAY = _MICROS["D"]
_WORDS = {
    "second": "s", "sec": "s", "minute": "min", "minutely": "min", "hour": "h", "hourly": "h", "hr": "h", "day": "D", "daily": "D",
    "week": "W", "weekly": "W", "month": "M", "monthly": "M", "quarter": "Q", "quarterly": "Q", "year": "Y", "yearly": "Y",
    "annual": "Y",
}  # fmt: skip
_SIGNS = {
    "us": "us", "ms": "ms", "s": "s", "S": "s", "m": "min", "T": "min", "min": "min", "h": "h", "H": "h", "d": "D",
    "D": "D", "w": "W", "W": "W", "M": "M", "ME": "M", "MS": "M", "Q": "Q", "QE": "Q", "QS": "Q", "Y": "Y", "YE": "Y", "YS": "Y",
    "A": "Y", "y": "Y",
}  # fmt: skip
_CALENDAR = {"W": "W-SUN", "M": "M", "Q": "Q-DEC", "Y": "Y-DEC"}
_DAYS = {"W": 7, "M": 31, "Q": 92, "Y": 366}
# From this number of buckets on, a gap's length is not exact if clocks change in it.
_LONG_GAP = 10_000
_EXAMPLES = '"15min", "h", "4h", "D", "W", "M", "Q" or "Y"'
# Steps that divide a day, the longest last: the usual sampling steps of sources.
_USUAL = [
    *(seconds * 10**6 for seconds in (1, 5, 10, 15, 30)),
    *(minutes * 60 * 10**6 for minutes in (1, 5, 10, 15, 30)),
    *(hours * 3600 * 10**6 for hours in (1, 2, 4, 6, 8, 12, 24)),
]


@dataclass(frozen=True)
class Bucket:
    """A frequency, such as 15 `min` or 1 `M`."""

    count: int
    unit: str

    def __str__(self) -> str:
        return self.unit if self.count == 1 else f"{self.count}{self.unit}"

    @property
    def micros(self) -> int | None:
        """Returns the length in microseconds; None for weeks, months, quarters and years, which follow the
        calendar."""
        return None if self.unit in _CALENDAR else self.count * _MICROS[self.unit]

    @property
    def longest(self) -> int:
        """Returns the maximum length in microseconds."""
        return self.micros or _DAYS[self.unit] * DAY

    def floor(self, times: pd.DatetimeIndex) -> pd.DatetimeIndex:
        """Returns the start of each time's bucket, by the clock of the times' own zone."""
        if self.micros is None:
            walls = times.tz_localize(None).to_period(_CALENDAR[self.unit]).start_time.as_unit(times.unit)
            return offsets.localize(walls, times.tz)
        if times.tz is None or str(times.tz) == "UTC":
            return times.floor(str(self))
        return offsets.floor(times, str(self), self.micros)

    def whole(self, buckets: pd.DatetimeIndex, most: int) -> pd.DatetimeIndex:
        """Returns every bucket from the first to the last of an index, without gaps."""
        if len(buckets) == 0:
            return buckets
        zone, unit = buckets.tz, buckets.unit
        first, last = buckets[0].tz_localize(None), buckets[-1].tz_localize(None)
        if self.micros is not None and (last - first) / datetime.timedelta(microseconds=self.micros) > most:
            raise ValueError(f"there are more than {most:,} buckets of {self} from {first} to {last}; choose a coarser freq=")
        if self.micros is not None:
            # By the clock, which starts every bucket but those of the second pass over times that it shows
            # twice; and by length, as those have it.
            by_clock = pd.date_range(first.floor(str(self)), last, freq=str(self), unit=unit)
            by_length = pd.date_range(buckets[0], buckets[-1], freq=datetime.timedelta(microseconds=self.micros), unit=unit)
            return self.floor(offsets.localize(by_clock, zone).union(by_length)).unique()
        alias = {"W": "W-MON", "M": "MS", "Q": "QS", "Y": "YS"}[self.unit]
        return offsets.localize(pd.date_range(first.normalize(), last, freq=alias, unit=unit), zone)

    def missing(self, buckets: pd.DatetimeIndex) -> np.ndarray:
        """Returns how many buckets of a fixed length lie between neighbors of an index."""
        micros = self.micros or self.longest
        by_length: np.ndarray = np.rint(np.diff(buckets.as_unit("us").asi8) / micros).astype(np.int64)
        by_clock = np.diff(buckets.tz_localize(None).as_unit("us").asi8 // micros)
        # The two differ where clocks change. In a long gap, that does not matter.
        for at in np.flatnonzero((by_length != by_clock) & (by_length < _LONG_GAP)):
            by_length[at] = len(self.whole(buckets[at : at + 2], _LONG_GAP)) - 1
        missing: np.ndarray = np.maximum(by_length - 1, 0)
        return missing


def parse(freq: str | datetime.timedelta | Bucket) -> Bucket:
    """Returns the bucket for pandas' aliases, old and new, for words like `daily`, and for timedeltas."""
    if isinstance(freq, Bucket):
        return freq
    if isinstance(freq, datetime.timedelta):
        micros = round(freq.total_seconds() * 10**6)
        unit = max(
            (unit for unit, one in _MICROS.items() if micros > 0 and micros % one == 0), key=_MICROS.__getitem__, default=None
        )
        if unit is None:
            raise ValueError(f"freq is {freq}; must be greater than 0")
        return Bucket(micros // _MICROS[unit], unit)
    spelled = re.fullmatch(r"\s*(\d*)\s*([A-Za-z]+)\s*", freq) if isinstance(freq, str) else None
    word = spelled[2] if spelled else ""
    unit = _SIGNS.get(word) or _WORDS.get(word.lower()) or _WORDS.get(word.lower().removesuffix("s"))
    count = int(spelled[1] or 1) if spelled else 0
    if unit is None or count < 1:
        raise ValueError(f"freq {freq!r} is not a valid frequency; expected for example {_EXAMPLES}")
    if unit in _CALENDAR and count > 1:
        raise ValueError(f"freq {freq!r} must not count several calendar periods; expected for example {_EXAMPLES}")
    return Bucket(count, unit)


def zone(tz: str | datetime.tzinfo | None) -> datetime.tzinfo | None:
    """Returns the time zone of the buckets; `None` means UTC without a zone in the result."""
    if isinstance(tz, str):
        try:
            return datetime.timezone.utc if tz.upper() == "UTC" else ZoneInfo(tz)
        except (ValueError, KeyError, OSError):
            raise ValueError(f'tz {tz!r} is not a valid time zone; expected for example "UTC" or "Europe/Berlin"') from None
    if tz is None or isinstance(tz, datetime.tzinfo):
        return tz
    raise TypeError(f'tz is {with_article(type(tz).__name__)}; expected a name such as "UTC", or None')


def step(gaps: np.ndarray) -> int | None:
    """Returns the usual step, in microseconds, nearest above the distances between a source's times.

    Returns none if fewer than half of the distances are near their median: the times are then events, not
    samples.
    """
    gaps = gaps[gaps > 0]
    if gaps.size == 0:
        return None
    middle = float(np.median(gaps))
    near = (gaps >= 0.5 * middle) & (gaps <= 1.5 * middle)
    return usual(middle) if near.mean() >= 0.5 else None


def usual(length: float) -> int | None:
    """Returns the longest usual step that is at most a tenth longer than a length in microseconds."""
    fitting = [one for one in _USUAL if one <= length / 0.9]
    return fitting[-1] if fitting else None


def steps(gaps: list[np.ndarray]) -> list[int]:
    """Returns the steps of sources. Two samples say little, so such a source only counts if none has more."""
    telling = [one for one in gaps if (one > 0).sum() > 1] or gaps
    return [one for one in map(step, telling) if one is not None]


def regular(owners: np.ndarray, gaps: np.ndarray) -> pd.Series:
    """Returns the median distance, in microseconds, of each owner that has at least three samples with one
    regular step.

    More than half of its distances must be close to their median. A step with randomly missing samples, whose
    median alone suggests a coarser one, has distances of all lengths.
    """
    known = pd.Series(gaps[gaps > 0], dtype="float64")
    of = owners[gaps > 0]
    grouped = known.groupby(of)
    middle = grouped.transform("median")
    close = ((known - middle).abs() <= middle / 4).groupby(of).mean()
    return grouped.median()[(close > 0.5) & (grouped.size() > 1)]


def common(found: list[int], times: list[pd.DatetimeIndex]) -> Bucket | None:
    """Returns a bucket of the coarsest of some steps; None if all times are already on one grid of it."""
    if not found:
        return None
    longest = max(found)
    walls = [one.tz_localize(None).as_unit("us").asi8 for one in times if len(one)]
    phases = np.unique(np.concatenate([np.unique(wall % longest) for wall in walls]))
    return None if phases.size <= 1 else of_micros(longest)


def of_micros(micros: int) -> Bucket:
    """Returns the bucket of a length in microseconds."""
    unit = max((unit for unit, one in _MICROS.items() if micros % one == 0), key=_MICROS.__getitem__)
    return Bucket(micros // _MICROS[unit], unit)
