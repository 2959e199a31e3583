"""Merges rows of one bucket into one, column by column, by an explicit policy."""

from collections.abc import Callable, Mapping
from typing import Union

import numpy as np
import pandas as pd

from cellblock_kernel.outputs.limits import many
from cellblock_kernel.timeseries.quality import Quality, listed

POLICIES = ("last", "first", "sum", "mean", "max", "min", "error")
Policy = Union[str, Mapping[str, str]]


def check(policy: Policy) -> None:
    """Rejects an invalid policy."""
    for one in policy.values() if isinstance(policy, Mapping) else [policy]:
        if one not in POLICIES:
            raise ValueError(f"duplicates {one!r} is not a valid policy; expected one of {', '.join(POLICIES)}")


def fold(
    table: pd.DataFrame, times: pd.DatetimeIndex, buckets: pd.DatetimeIndex, policy: Policy, label: str, quality: Quality
) -> pd.DataFrame:
    """Returns the table with one row per bucket, ordered by time. `times` are those before they were floored:
    they decide which is last.

    A null is never a sample. Columns without numbers take their last sample if the policy is arithmetic.
    """
    if not (times.is_monotonic_increasing and buckets.is_monotonic_increasing):
        # Both orders are the same except where clocks are set back; the bucket decides there.
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
        f"{label}: {int(sizes[repeated].sum())} rows fall into {many(int(repeated.sum()), 'bucket')} and became one row each by "
        f"{_spoken(columns, policy)}; {int(placeholders.sum())} of the buckets had a null and a sample",
        buckets=int(repeated.sum()),
        rows=int(sizes[repeated].sum()),
        placeholders=int(placeholders.sum()),
        policy=used[0] if len(used) == 1 else {str(column): one for column, one in list(columns.items())[:20]},
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
        f"{label} has {int(samples.at[first, column])} samples of {column!r} in the bucket {first}, the first of "
        f"{many(int(rows.sum()), 'conflict')}; choose one with duplicates=, of {', '.join(POLICIES[:-1])}"
    )


def _spoken(columns: dict[object, str], policy: Policy) -> str:
    used = sorted(set(columns.values()))
    if not isinstance(policy, Mapping) and used not in ([], [policy]):
        texts = [column for column, one in columns.items() if one != policy]
        return f"the policy {policy!r} ('last' for {listed(texts, 4)}, which hold no numbers)"
    return f"the policy {' and '.join(map(repr, used)) or repr('last')}"


def fold_cells(
    cells: np.ndarray,
    values: np.ndarray,
    times: pd.DatetimeIndex,
    policy: str,
    label: str,
    name: Callable[[int], str],
    quality: Quality,
) -> tuple[np.ndarray, np.ndarray]:
    """Does the same for long rows, each in a numbered cell: returns one value per cell that has a sample, and
    the cells."""
    order = np.lexsort((times.asi8, cells))
    cells, values = cells[order], values[order]
    known = ~np.isnan(values)
    heads, sizes = _runs(cells)
    if (sizes > 1).any():
        samples = np.add.reduceat(known.astype(np.int64), heads)
        conflicts = np.flatnonzero(samples > 1)
        if policy == "error" and conflicts.size:
            raise ValueError(
                f"{label} has {int(samples[conflicts[0]])} samples of {name(int(cells[heads[conflicts[0]]]))}, the first of "
                f"{many(conflicts.size, 'conflict')}; choose one with duplicates=, of {', '.join(POLICIES[:-1])}"
            )
        repeated = sizes > 1
        placeholders = int((repeated & (samples > 0) & (samples < sizes)).sum())
        quality.note(
            "duplicate_buckets",
            f"{label}: {int(sizes[repeated].sum())} rows fall into {many(int(repeated.sum()), 'bucket')} of an entity and became "
            f"one each by the policy {policy!r}; {placeholders} of the buckets had a null and a sample",
            buckets=int(repeated.sum()),
            rows=int(sizes[repeated].sum()),
            placeholders=placeholders,
            policy=policy,
        )
    cells, values = cells[known], values[known]
    heads, sizes = _runs(cells)
    if policy in ("last", "error"):
        folded = values[heads + sizes - 1]
    elif policy == "first" or cells.size == 0:
        folded = values[heads]
    elif policy in ("sum", "mean"):
        folded = np.add.reduceat(values, heads) / (sizes if policy == "mean" else 1)
    else:
        folded = (np.maximum if policy == "max" else np.minimum).reduceat(values, heads)
    return folded, cells[heads]


def _runs(sorted_cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the start and the length of each run of the same number."""
    if sorted_cells.size == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    heads = np.flatnonzero(np.r_[True, sorted_cells[1:] != sorted_cells[:-1]])
    return heads, np.diff(np.r_[heads, sorted_cells.size])
