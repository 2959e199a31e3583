"""`align_timeseries`: several sources on one index, without joining them."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import pandas as pd

from cellblock_kernel.outputs.limits import many
from cellblock_kernel.timeseries.duplicates import Policy
from cellblock_kernel.timeseries.merge import HOW, index_of
from cellblock_kernel.timeseries.prepare import Freq, TimeColumn, note_coverage, prepare
from cellblock_kernel.timeseries.quality import Quality
from cellblock_kernel.timeseries.sources import gather

_FILLS = ("ffill", "bfill", "linear")
# Maximum number of buckets of a whole grid: 8 bytes each, and the same again for every column.
_MOST = 5_000_000


def align_timeseries(
    *sources: Any,
    names: Sequence[str] | None = None,
    time_col: TimeColumn | None = None,
    freq: Freq | None = None,
    how: str = "outer",
    duplicates: Policy = "last",
    tz: str | datetime.tzinfo | None = "UTC",
    errors: str = "raise",
    whole: bool = False,
    fill: str | float | None = None,
    fill_limit: int | None = None,
) -> Any:
    """Puts time series onto one common index of buckets; gaps are NaN.

    The result has the shape of the arguments: a dict of sources gives a dict of DataFrames, several sources or
    a list of them a list in the given order, a single source a single DataFrame. A Series gives a Series.

    sources, names, time_col, freq, how, duplicates, tz, errors: as for `safe_merge_timeseries`. `names` label the diagnostics;
        columns keep their names.
    whole: include buckets in which no source has a row, from the first to the last; needs `freq`.
    fill: value of a gap: `None` (NaN), `ffill` (the previous sample), `bfill` (the next one), `linear` (between both, by
        time), or a number. Only `ffill` goes beyond a source's last sample, only `bfill` before its first.
    fill_limit: the maximum number of consecutive buckets that `ffill`, `bfill` or `linear` fill.

    Diagnostics as for `safe_merge_timeseries`, in the `attrs` of every result; also `source_coverage` for each source, and
    `filled_gaps` with the number of values that are not samples.
    """
    if how not in HOW:
        raise ValueError(f"how {how!r} is not a valid join; expected one of {', '.join(HOW)}")
    _check_fill(fill, fill_limit)
    if whole and freq is None:
        raise ValueError("whole=True needs freq=, the distance of the buckets")
    quality = Quality()
    gathered = gather(sources, names)
    prepared = prepare(gathered.sources, time_col=time_col, freq=freq, duplicates=duplicates, tz=tz, errors=errors, quality=quality)
    on = index_of(prepared.tables, how)
    if whole and prepared.bucket is not None:
        on = prepared.bucket.whole(on, _MOST)
    on = on.rename(prepared.name)
    labels = [one.label for one in gathered.sources]
    note_coverage(labels, [one.name for one in gathered.sources], prepared.tables, on, quality, always=True)
    aligned = []
    for source, table in zip(gathered.sources, prepared.tables):
        one = _filled(table.reindex(on), fill, fill_limit, source.label, source.name, quality)
        aligned.append(one.iloc[:, 0] if source.is_series else one)
    quality.report()
    for one in aligned:
        quality.attach(one)
    if gathered.shape == "one":
        return aligned[0]
    if gathered.shape == "mapping":
        return dict(zip(sources[0], aligned))
    return aligned


def _check_fill(fill: Any, limit: int | None) -> None:
    number = isinstance(fill, (int, float)) and not isinstance(fill, bool)
    if fill is not None and not number and fill not in _FILLS:
        raise ValueError(f"fill {fill!r} is not a valid fill; expected None, a number, or one of {', '.join(_FILLS)}")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise ValueError(f"fill_limit {limit!r} is not a valid number of buckets; expected 1 or more")
    if limit is not None and (fill is None or number):
        raise ValueError(f"fill_limit needs fill= to be one of {', '.join(_FILLS)}")


def _filled(
    table: pd.DataFrame, fill: str | float | None, limit: int | None, label: str, name: str | None, quality: Quality
) -> pd.DataFrame:
    if fill is None or table.empty:
        return table
    if fill == "ffill":
        filled = table.ffill(limit=limit)
    elif fill == "bfill":
        filled = table.bfill(limit=limit)
    else:
        filled = table.copy()
        numbers = [
            column
            for column in table.columns
            if pd.api.types.is_numeric_dtype(table[column].dtype) and not pd.api.types.is_bool_dtype(table[column].dtype)
        ]
        if fill == "linear":
            filled[numbers] = table[numbers].astype("float64").interpolate("time", limit=limit, limit_area="inside")
        else:
            filled[numbers] = table[numbers].fillna(fill)
    count = int(table.isna().to_numpy().sum() - filled.isna().to_numpy().sum())
    if count:
        quality.note(
            "filled_gaps",
            f"{label}: filled {many(count, 'value')} in gaps by {fill!r}",
            series=name or label,
            values=count,
            fill=fill,
        )
    return filled
