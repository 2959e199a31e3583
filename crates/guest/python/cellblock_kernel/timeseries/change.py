"""`derive_change_series`: the change of a total whose members enter and leave."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from cellblock_kernel.outputs.limits import many
from cellblock_kernel.timeseries import events
from cellblock_kernel.timeseries.flows import Flows, flows
from cellblock_kernel.timeseries.matrix import Matrix, read
from cellblock_kernel.timeseries.prepare import Freq
from cellblock_kernel.timeseries.quality import Quality, listed

_TOTALS = frozenset({"total", "sum", "all", "aggregate", "overall", "grand_total", "grand total"})


def derive_change_series(
    data: Any,
    *,
    time_col: str | None = None,
    entity_col: str | None = None,
    value_col: str | None = None,
    selected: Sequence[Any] | int | None = None,
    freq: Freq | None = None,
    duplicates: str = "last",
    tz: str | datetime.tzinfo | None = "UTC",
    errors: str = "raise",
    max_events: int | None = 1000,
) -> pd.DataFrame:
    """The total of a population and its change per period, with real flows separated from changes of
    membership.

    An entity is observed in a period if it has a value there that is not null. Between two adjacent periods,
    only entities observed in both can have flows; one that is first listed, is delisted, or has a gap and
    resumes, changes the total by its whole level without any flow. Values are levels (balances, holdings, open
    interest, supply): a positive change is a flow into the measured quantity, a negative one out of it. Totals
    always cover the whole population.

    data: wide (one entity per numeric column, time in a column or the index; columns of text and of booleans are not entities) or
        long rows (time, entity, value), as a DataFrame, a list of dicts, a dict of columns, a Series, or an object with
        `to_pandas()`.
    time_col, entity_col, value_col: the columns; `entity_col` or `value_col` of long rows. Found if there is one candidate: a
        single column of text beside a single one of numbers, and times that repeat, are long rows.
    selected: entities for display, by name, or the number of the largest (by size at the end of the series). Adds
        `selected_entities_change`, their part of `stable_entities_change`, and changes nothing else.
    freq, tz: the periods, as for `safe_merge_timeseries`. Times are floored before anything is computed; without `freq` to the
        coarsest step by which an entity reports, at most a day, if the times are not on one grid of it already.
    duplicates: how to combine several values of an entity in a period: `last` (in time), `first`, `sum`, `mean`, `max`, `min`,
        `error`. A null never counts as a value.
    errors: rows without a readable time or entity are an error (`raise`), or left out (`coerce`).
    max_events: the maximum number of events in `attrs`, largest changes first; `None` for all.

    Returns a DataFrame with one row per period that the data name, sorted, its index the beginnings of the periods, and the columns
        `total_value`: the sum over all observed entities, in the unit of the data; NaN if none was observed.
        `total_change`: change of the total since the previous row, including entering and leaving members.
        `stable_entities_change`: the real flow, over entities observed in both periods. Use this number for a headline.
        `coverage_change`: levels of entering entities, minus those of exiting ones.
        `entering_entity_count`, `exiting_entity_count`: their numbers.
        `selected_entities_change`: with `selected` only.
    `total_change == stable_entities_change + coverage_change` holds exactly in every row. In the first row, all changes are 0:
    there is nothing to compare with.

    `.attrs["coverage_events"]` is a list of dicts in order of time: `period` (ISO 8601), `entity`, `kind` (`entered`: first listed;
    `exited`: never seen again; `gap`: seen again later; `resumed`: back after a gap), `value` (the level that came or went),
    `change` (the same with its sign in `coverage_change`), `previous_value` (the entity's last value before the period) and
    `next_value` (its first one in or after it). `.attrs["coverage_event_count"]` counts all of them by kind,
    `.attrs["selected_entities"]` lists the selected. `.attrs["data_quality"]` and the execution's findings have the diagnostics:
    `coverage_events`, `slower_entities`, `duplicate_buckets`, `buckets_inferred`, `midnights_of_another_zone`, `missing_periods`,
    `unobserved_periods`, `unobserved_entities`,
    `infinite_values` (infinite values count as not observed), `ignored_columns`, `numbers_from_text` and others.

    Raises `ValueError` (with the problem, its location and the valid choices) or `TypeError` (for invalid data).
    """
    if max_events is not None and (isinstance(max_events, bool) or not isinstance(max_events, int) or max_events < 0):
        raise ValueError(f"max_events {max_events!r} is not a valid number of events; expected 0 or more, or None")
    quality = Quality()
    matrix = read(
        data,
        time_col=time_col,
        entity_col=entity_col,
        value_col=value_col,
        freq=freq,
        policy=duplicates,
        tz=tz,
        errors=errors,
        quality=quality,
    )
    chosen = None if selected is None else _selected(selected, matrix)
    found = flows(matrix.values, chosen, max_events)
    result = _table(found, matrix)
    named = events.events(found, matrix.values, matrix.periods, matrix.entities)
    counts = events.count(found, matrix.values)
    _note(found, matrix, quality)
    events.note(named, counts, quality)
    result.attrs["coverage_events"] = named
    result.attrs["coverage_event_count"] = counts
    if chosen is not None:
        result.attrs["selected_entities"] = [str(matrix.entities[one]) for one in chosen]
    quality.report()
    return quality.attach(result)


def _table(found: Flows, matrix: Matrix) -> pd.DataFrame:
    # The total's change is computed from its two parts, so that they add up to the last bit.
    change = found.stable + found.coverage
    for column in (found.total, change, found.stable, found.coverage):
        if not np.isfinite(column).all():
            period = matrix.periods[int(np.flatnonzero(~np.isfinite(column))[0])]
            raise ValueError(
                f"the sum of the period {period} exceeds the maximum of a 64-bit float (1.8e308); scale the values first"
            )
    columns = {
        "total_value": np.where(found.observed, found.total, np.nan),
        "total_change": change,
        "stable_entities_change": found.stable,
        "coverage_change": found.coverage,
        "entering_entity_count": found.entering,
        "exiting_entity_count": found.exiting,
    }
    if found.selected is not None:
        columns["selected_entities_change"] = found.selected
    return pd.DataFrame(columns, index=matrix.periods)


def _selected(selected: Sequence[Any] | int, matrix: Matrix) -> np.ndarray:
    """Returns the positions of the entities for display."""
    if isinstance(selected, (int, np.integer)) and not isinstance(selected, bool):
        if selected < 1:
            raise ValueError(f"selected {selected} is not a valid number of entities; expected 1 or more, or a list of entities")
        return _top(matrix, int(selected))
    if isinstance(selected, (str, bool)) or not hasattr(selected, "__iter__"):
        raise TypeError(f"selected is {selected!r}; expected a list of entities, or the number of largest ones")
    positions = {entity: number for number, entity in enumerate(matrix.entities)}
    wanted = list(dict.fromkeys(selected))
    unknown = [entity for entity in wanted if entity not in positions]
    if unknown and matrix.entities:
        raise ValueError(
            f"selected names {listed(unknown)}, which is not an entity of the data; there are {listed(matrix.entities)}"
        )
    return np.array([positions[entity] for entity in wanted if entity in positions], dtype=np.int64)


def _top(matrix: Matrix, count: int) -> np.ndarray:
    """Returns the largest in the last period; after entities that report there, the others by their last
    values."""
    if matrix.values.size == 0:
        return np.zeros(0, dtype=np.int64)
    observed = ~np.isnan(matrix.values)
    last = len(observed) - 1 - observed[::-1].argmax(axis=0)
    sizes = np.abs(matrix.values[last, np.arange(len(matrix.entities))])
    here = observed[-1]
    return np.lexsort((-np.where(np.isnan(sizes), -1.0, sizes), ~here))[:count]


def _note(found: Flows, matrix: Matrix, quality: Quality) -> None:
    silent = np.flatnonzero(~found.observed)
    if silent.size:
        quality.note(
            "unobserved_periods",
            f"nobody was observed in {silent.size} of {many(len(matrix.periods), 'period')}, first in {matrix.periods[silent[0]]}: "
            "total_value is NaN there, all members count as gone",
            count=int(silent.size),
            first=matrix.periods[silent[0]],
        )
    never = [matrix.entities[one] for one in np.flatnonzero(~found.ever)]
    if never and len(matrix.periods):
        quality.note(
            "unobserved_entities",
            f"no period has a value of {listed(never)}",
            entities=[str(one) for one in never[:20]],
            count=len(never),
        )
    _note_total_among_entities(found, matrix, quality)
    if matrix.bucket and matrix.bucket.micros and len(matrix.periods) > 1:
        missing = matrix.bucket.missing(matrix.periods)
        if missing.any():
            first = matrix.periods[int(np.flatnonzero(missing)[0]) + 1]
            quality.note(
                "missing_periods",
                f"the data lack {many(int(missing.sum()), 'period')} of {matrix.bucket} between first and last; "
                f"the change after such a gap is over more than one period, first at {first}",
                count=int(missing.sum()),
                first=first,
            )


def _note_total_among_entities(found: Flows, matrix: Matrix, quality: Quality) -> None:
    """Reports a column that is the sum of the others, which would double the total."""
    for number, entity in enumerate(matrix.entities):
        if len(matrix.entities) > 2 and isinstance(entity, str) and entity.strip().lower() in _TOTALS:
            levels = np.nan_to_num(matrix.values[:, number])
            if levels.any() and np.allclose(found.total, 2 * levels, rtol=1e-9, atol=0.0):
                quality.note(
                    "total_among_entities",
                    f"the entity {entity!r} is the sum of all others, so everything is counted twice; exclude it",
                    series=entity,
                )
