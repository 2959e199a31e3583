"""Starts of buckets by the clock of a zone, also where the clock is changed.

A bucket starts when the clock shows a multiple of its length. Where a change of the clock is a multiple of the
length, as for hours and quarters of an hour, every bucket has that length, and a time that the clock shows twice
starts two buckets. Longer buckets follow the clock as days do: the clock starts each of them once, and the one
that contains the change is longer or shorter by it.
"""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd


def floor(times: pd.DatetimeIndex, freq: str, length: int) -> pd.DatetimeIndex:
    """Returns the start of each time's bucket; the length is in microseconds.

    The starts never decrease while the times increase, and no start is after its time.
    """
    zone = times.tz
    walls = times.tz_localize(None)
    length *= _per_micro(times)
    utc = times.asi8
    offsets = walls.asi8 - utc
    floored = walls.floor(freq)
    first = localize(floored, zone).asi8
    own = floored.asi8 - offsets
    change = _offsets(first, times) - offsets
    # A start that the clock skipped has moved to the change, after which the offset is that of the times.
    change = np.where(change == 0, _offsets(own, times) - offsets, change)
    starts = np.where(change % length == 0, own, first)
    # In the second pass over times that the clock shows twice, a bucket that began late in the first pass goes on.
    shown = localize(walls, zone).asi8
    again = np.flatnonzero((shown != utc) & (starts != own))
    if again.size:
        before = _of_utc(_before_change(shown[again], utc[again], times), times)
        last = localize(before.tz_localize(None).floor(freq), zone).asi8
        starts[again] = np.maximum(starts[again], last)
    return _of_utc(starts, times)


def localize(walls: pd.DatetimeIndex, zone: datetime.tzinfo | None) -> pd.DatetimeIndex:
    """Returns when a clock first shows some times; for times that it skips, the moment of the change.

    pandas' `shift_forward` finds that moment only if the change is by an hour and not near UTC.
    """
    if zone is None:
        return walls
    found = walls.tz_localize(zone, ambiguous=np.ones(len(walls), dtype=bool), nonexistent="NaT")
    skipped = np.flatnonzero(found.isna() & walls.notna())
    if skipped.size == 0:
        return found
    instants = found.asi8.copy()
    day = 86400 * 10**6 * _per_micro(walls)
    # No zone is a day from UTC.
    instants[skipped] = _before_change(walls.asi8[skipped] - day, walls.asi8[skipped] + day, found) + 1
    return _of_utc(instants, found)


def _per_micro(index: pd.DatetimeIndex) -> int:
    return {"us": 1, "ns": 1000}[index.unit]


def _of_utc(instants: np.ndarray, like: pd.DatetimeIndex) -> pd.DatetimeIndex:
    index = pd.DatetimeIndex(instants.view(f"datetime64[{like.unit}]"))
    return index.tz_localize("UTC").tz_convert(like.tz)


def _offsets(instants: np.ndarray, like: pd.DatetimeIndex) -> np.ndarray:
    """Returns the offsets from UTC of instants in the zone of an index, in its unit."""
    offsets: np.ndarray = _of_utc(instants, like).tz_localize(None).asi8 - instants
    return offsets


def _before_change(before: np.ndarray, after: np.ndarray, like: pd.DatetimeIndex) -> np.ndarray:
    """Returns the last instant with the offset of `before`, where `after` has another one."""
    offsets = _offsets(before, like)
    while ((after - before) > 1).any():
        middle = before + (after - before) // 2
        same = _offsets(middle, like) == offsets
        before, after = np.where(same, middle, before), np.where(same, after, middle)
    return before
