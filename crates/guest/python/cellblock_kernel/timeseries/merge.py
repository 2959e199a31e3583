"""`safe_merge_timeseries`: several sources as one table."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pandas as pd

from cellblock_kernel.timeseries.duplicates import Policy
from cellblock_kernel.timeseries.prepare import Freq, TimeColumn, note_coverage, prepare
from cellblock_kernel.timeseries.quality import Quality, listed
from cellblock_kernel.timeseries.sources import Source, gather

HOW = ("outer", "inner", "left")


def safe_merge_timeseries(
    *sources: Any,
    names: Sequence[str] | None = None,
    time_col: TimeColumn | None = None,
    freq: Freq | None = None,
    how: str = "outer",
    duplicates: Policy = "last",
    tz: str | datetime.tzinfo | None = "UTC",
    errors: str = "raise",
) -> pd.DataFrame:
    """Joins time series on common buckets into one DataFrame: one row per bucket, sorted by time, the index named after the time.

    sources: DataFrames (pandas, or anything with `to_pandas()`), Series, lists of dicts (JSON rows), lists of `[time, value]`
        pairs, dicts of columns, or what an API returned around one list of rows. One list of sources, or one dict of sources by
        name (like `names`), also works.
    names: one name per source. Every column is then there as `<name>_<column>`, and also as `<column>` if no other source has
        it. Without names, columns that several sources have become `source_1_<column>` and so on, the others keep their names.
    time_col: the time's column, one for all, a list with one per source, or a dict by name. Found by an index of times, dtype
        or name (`timestamp`, `date`, `ts`, …) if not given; several candidates are an error.
    freq: the bucket (`"15min"`, `"h"`, `"D"`, `"W"`, `"M"`, `"Q"`, `"Y"`, a timedelta); times are floored to its start, weeks
        to Monday. Without it, the coarsest step by which the sources report, at most a day, if their times are not on one grid
        already.
    how: which buckets: `outer` of any source, `inner` of all, `left` those of the first. Gaps are NaN; nothing is filled.
    duplicates: how to combine several rows in one bucket: `last` (in time), `first`, `sum`, `mean`, `max`, `min` or `error`, or a
        dict by column (the others: `last`). A null never counts as a sample; columns without numbers are not summed but
        take the last.
    tz: the zone in which days begin and of the result's index; `None` for UTC without a zone. Times without one are UTC. Numbers
        are epochs in seconds, milliseconds, microseconds or nanoseconds, by their magnitude. In buckets of days and longer, a
        source whose times are all midnights of its own zone, or dates, keeps its dates.
    errors: a row without a readable time is an error (`raise`), or left out (`coerce`).

    Diagnostics are in `.attrs["data_quality"]`, a list of dicts with `code`, `message`, `series` and `details`, and among the
    execution's findings: `duplicate_buckets`, `buckets_inferred`, `midnights_of_another_zone`, `source_coverage`,
    `colliding_columns`, `unreadable_times`, `mixed_epoch_units`, `times_guessed`, `empty_source`.

    Raises `ValueError` (with the problem, its location and the valid choices) or `TypeError` (for an invalid source).
    """
    if how not in HOW:
        raise ValueError(f"how {how!r} is not a valid join; expected one of {', '.join(HOW)}")
    quality = Quality()
    gathered = gather(sources, names)
    prepared = prepare(gathered.sources, time_col=time_col, freq=freq, duplicates=duplicates, tz=tz, errors=errors, quality=quality)
    on = index_of(prepared.tables, how)
    columns = _columns(gathered.sources, prepared.tables, quality)
    merged = pd.DataFrame({new: prepared.tables[number][old].reindex(on) for new, number, old in columns}, index=on)
    merged.index.name = prepared.name if prepared.name not in merged.columns else f"{prepared.name}_bucket"
    labels = [one.label for one in gathered.sources]
    note_coverage(labels, [one.name for one in gathered.sources], prepared.tables, on, quality, always=False)
    quality.report()
    return quality.attach(merged)


def index_of(tables: list[pd.DataFrame], how: str) -> pd.DatetimeIndex:
    """Returns the buckets of a join, in order."""
    on = tables[0].index
    for one in tables[1:]:
        if how == "outer":
            on = on.union(one.index)
        elif how == "inner":
            on = on.intersection(one.index)
    return on.sort_values()


def _columns(sources: list[Source], tables: list[pd.DataFrame], quality: Quality) -> list[tuple[Any, int, Any]]:
    """Returns the columns of the result: their names, the numbers of their sources, and their names there."""
    owners = Counter(column for one in tables for column in one.columns)
    named = all(one.name is not None for one in sources)
    shared = [column for column, count in owners.items() if count > 1]
    columns: list[tuple[Any, int, Any]] = []
    for number, (source, one) in enumerate(zip(sources, tables)):
        for column in one.columns:
            if named:
                columns.append((f"{source.name}_{column}", number, column))
            elif owners[column] > 1:
                columns.append((f"source_{number + 1}_{column}", number, column))
            else:
                columns.append((column, number, column))
    taken = Counter(new for new, _, _ in columns)
    twice = [new for new, count in taken.items() if count > 1]
    if twice:
        raise ValueError(
            f"the result would have several columns named {listed(twice)}; choose other names=, or rename columns first"
        )
    if named:
        # An alias that equals another source's prefixed column would not be unique, so it is left
        # out.
        aliases = [(column, number) for number, one in enumerate(tables) for column in one.columns if owners[column] == 1]
        columns += [(column, number, column) for column, number in aliases if column not in taken]
        hidden = [column for column, _ in aliases if column in taken]
        if shared or hidden:
            quality.note(
                "colliding_columns",
                f"{listed(shared + hidden)} can mean several columns, so only the prefixed columns exist",
                columns=shared + hidden,
            )
    elif shared:
        quality.note(
            "colliding_columns",
            f"several sources have {listed(shared)}; they were renamed to source_1_…, source_2_…; name the sources with names=",
            columns=shared,
        )
    return columns
