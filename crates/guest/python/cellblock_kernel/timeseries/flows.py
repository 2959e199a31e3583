"""The arithmetic of changes: flows of staying members, and levels of entering and leaving members."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Cells processed at a time: few enough for a processor's cache, enough to make numpy's calls cheap.
_CELLS = 1 << 18


@dataclass
class Moves:
    """Members that entered or left the total, as positions in the matrix; `change` is the effect of each on it."""

    period: np.ndarray
    entity: np.ndarray
    change: np.ndarray


@dataclass
class Flows:
    """One entry per period. All changes are zero in the first, which has no predecessor."""

    total: np.ndarray
    stable: np.ndarray
    coverage: np.ndarray
    entering: np.ndarray
    exiting: np.ndarray
    selected: np.ndarray | None
    observed: np.ndarray
    """Whether any entity was observed in the period."""
    ever: np.ndarray
    """Whether an entity was observed in any period."""
    moves: Moves


def flows(values: np.ndarray, selected: np.ndarray | None, most: int | None) -> Flows:
    """Compares each period (row) of a matrix with the previous one; NaN means not observed.

    Keeps the `most` moves of the largest size, all if it is `None`.
    """
    periods, entities = values.shape
    result = Flows(
        total=np.zeros(periods),
        stable=np.zeros(periods),
        coverage=np.zeros(periods),
        entering=np.zeros(periods, dtype=np.int64),
        exiting=np.zeros(periods, dtype=np.int64),
        selected=None if selected is None else np.zeros(periods),
        observed=np.zeros(periods, dtype=bool),
        ever=np.zeros(entities, dtype=bool),
        moves=_none(),
    )
    if periods == 0 or entities == 0:
        return result
    _levels(values[:1], result, 0)
    rows = max(1, _CELLS // entities)
    kept, least = [result.moves], -1.0
    for start in range(1, periods, rows):
        # A sum that is too large becomes infinite, which the caller rejects.
        with np.errstate(over="ignore", invalid="ignore"):
            kept.append(_block(values[start - 1 : start + rows], selected, result, start, least))
        if most is not None and sum(one.period.size for one in kept) > 4 * most:
            kept = [_largest(kept, most)]
            least = float(np.abs(kept[0].change).min(initial=np.inf))
    result.moves = _largest(kept, most)
    return result


def _levels(rows: np.ndarray, result: Flows, start: int) -> None:
    observed = ~np.isnan(rows)
    with np.errstate(over="ignore", invalid="ignore"):
        result.total[start : start + len(rows)] = np.where(observed, rows, 0.0).sum(axis=1)
    result.observed[start : start + len(rows)] = observed.any(axis=1)
    result.ever |= observed.any(axis=0)


def _block(rows: np.ndarray, selected: np.ndarray | None, result: Flows, start: int, least: float) -> Moves:
    """Returns the rows from the second on, each beside its predecessor, and moves that are larger than the
    `least`."""
    here = slice(start, start + len(rows) - 1)
    moves = _none()
    observed = rows == rows
    if observed.all():
        result.total[here] = rows[1:].sum(axis=1)
        result.observed[here] = True
        result.ever[:] = True
        steps = rows[1:] - rows[:-1]
    else:
        levels = np.where(observed, rows, 0.0)
        result.total[here] = levels[1:].sum(axis=1)
        result.observed[here] = observed[1:].any(axis=1)
        result.ever |= observed[1:].any(axis=0)
        steps = levels[1:] - levels[:-1]
        moved = observed[1:] != observed[:-1]
        # The step of an entering member is its whole level, that of a leaving one the negative
        # level: both are exact.
        changes = np.where(moved, steps, 0.0)
        result.coverage[here] = changes.sum(axis=1)
        result.entering[here] = np.count_nonzero(moved & observed[1:], axis=1)
        result.exiting[here] = np.count_nonzero(moved, axis=1) - result.entering[here]
        steps -= changes
        period, entity = np.nonzero(moved if least < 0 else np.abs(changes) > least)
        moves = Moves(period + start, entity, changes[period, entity])
    result.stable[here] = steps.sum(axis=1)
    if selected is not None and result.selected is not None:
        result.selected[here] = steps[:, selected].sum(axis=1)
    return moves


def _none() -> Moves:
    return Moves(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))


def _largest(kept: list[Moves], most: int | None) -> Moves:
    """Returns the moves that changed the total most, ordered by time."""
    moves = Moves(*(np.concatenate([getattr(one, field) for one in kept]) for field in ("period", "entity", "change")))
    if most is None or moves.period.size <= most:
        return moves
    # Of equal sizes, the earlier comes first: a stable order, so that the same data give the same
    # events.
    chosen = np.sort(np.argsort(-np.abs(moves.change), kind="stable")[:most])
    return Moves(moves.period[chosen], moves.entity[chosen], moves.change[chosen])
