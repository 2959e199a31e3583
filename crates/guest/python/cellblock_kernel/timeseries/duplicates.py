"""Folds rows of one bucket into one, column by column, by an explicit policy."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from cellblock_kernel.timeseries.quality import Quality, listed

POLICIES = ("last", "first", "sum", "mean", "max", "min", "error")
Policy = str | Mapping[str, str]


def check(policy: Policy) -> None:
    """Refuses what is no policy."""
    for one in policy.values() if isinstance(policy, Mapping) else [policy]:
        if one not in POLICIES:
            raise ValueError(f"duplicates {one!r} is no policy; expected one of {', '.join(POLICIES)}")


def fold(
    table: pd.DataFrame, times: pd.DatetimeIndex, buckets: pd.DatetimeIndex, policy: Policy, label: str, quality: Quality
) -> pd.DataFrame:
    """The table with one row per bucket, in order of time. `times` are those before they were floored: they decide what is last.

    A null is no sample under any policy. Columns that are no numbers take their last sample where the policy is to count.
    """
    if not (times.is_monotonic_increasing and buckets.is_monotonic_increasing):
        # Both orders are the same but where clocks are set back; the bucket decides there.
        order = np.lexsort((times.asi8, buckets.asi8))
        table, buckets = table.iloc[order], buckets[order]
    if buckets.is_unique:
        return table.set_axis(buckets)
    columns = {column: _of(policy, column, table[column]) for column in table.columns}
    groups = table.set_axis(buckets).groupby(level=0, sort=True)
    samples = groups.count()
    sizes = groups.size()
    _refuse(samples, [column for column, one in columns.items() if one == "error"], label)
    parts = []
    for one in POLICIES:
        chosen = [column for column, own in columns.items() if own == one]
        if chosen:
            parts.append(_folded(groups[chosen], one))
    folded = pd.concat(parts, axis=1)[list(table.columns)] if parts else pd.DataFrame(index=sizes.index)
    repeated = sizes > 1
    placeholders = (samples[repeated].lt(sizes[repeated], axis=0) & samples[repeated].gt(0)).any(axis=1)
    used = sorted(set(columns.values())) or ["last"]
    quality.note(
        "duplicate_buckets",
        f"{label}: {int(sizes[repeated].sum())} rows fall into {int(repeated.sum())} buckets and became one row each by "
        f"{_spoken(columns, policy)}; {int(placeholders.sum())} of the buckets held a null beside a sample",
        buckets=int(repeated.sum()),
        rows=int(sizes[repeated].sum()),
        placeholders=int(placeholders.sum()),
        policy=used[0] if len(used) == 1 else {str(column): one for column, one in list(columns.items())[:50]},
    )
    return folded


def _of(policy: Policy, column: object, values: pd.Series) -> str:
    own = policy.get(str(column), "last") if isinstance(policy, Mapping) else policy
    counted = pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_bool_dtype(values.dtype)
    return own if counted or own in ("first", "error") else "last"


def _folded(groups: "pd.api.typing.DataFrameGroupBy", policy: str) -> pd.DataFrame:
    if policy == "sum":
        return groups.sum(min_count=1)
    if policy == "error":
        return groups.last()
    return getattr(groups, policy)()


def _refuse(samples: pd.DataFrame, strict: list[object], label: str) -> None:
    conflicts = samples[strict] > 1
    if not conflicts.to_numpy().any():
        return
    rows = conflicts.any(axis=1)
    first = rows.idxmax()
    column = conflicts.columns[conflicts.loc[first].to_numpy().argmax()]
    raise ValueError(
        f"{label} has {int(samples.at[first, column])} samples of {column!r} in the bucket {first}, and so in {int(rows.sum())} buckets; "
        f"choose one with duplicates=, of {', '.join(POLICIES[:-1])}"
    )


def _spoken(columns: dict[object, str], policy: Policy) -> str:
    used = sorted(set(columns.values()))
    if not isinstance(policy, Mapping) and used not in ([], [policy]):
        texts = [column for column, one in columns.items() if one != policy]
        return f"the policy {policy!r} ('last' for {listed(texts, 4)}, which hold no numbers)"
    return f"the policy {' and '.join(map(repr, used)) or repr('last')}"
