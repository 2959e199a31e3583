"""Coverage events: entities that entered or left a total, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from cellblock_kernel.timeseries.flows import Flows
from cellblock_kernel.timeseries.quality import Notes, Quality, clipped, plain

KINDS = ("entered", "exited", "gap", "resumed")
# Maximum number in a finding: the host drops details that are too large.
_IN_FINDING = 40
_NAME = 60


def events(flows: Flows, values: np.ndarray, periods: pd.DatetimeIndex, entities: Sequence[Any]) -> Notes:
    """Returns dicts ordered by time, as described by `derive_change_series`."""
    moves = flows.moves
    found = Notes()
    for period, entity, change in zip(moves.period.tolist(), moves.entity.tolist(), moves.change.tolist()):
        column = values[:, entity]
        came = not np.isnan(column[period])
        previous = _first(column[:period][::-1])
        following = _first(column[period:])
        kind = ("entered" if previous is None else "resumed") if came else ("exited" if following is None else "gap")
        found.append(
            {
                "period": periods[period].isoformat(),
                "entity": plain(entities[entity]),
                "kind": kind,
                "value": following if came else previous,
                "change": change,
                "previous_value": previous,
                "next_value": following,
            }
        )
    return found


def _first(levels: np.ndarray) -> float | None:
    """Returns the first observed value. It is usually near, so the steps start small."""
    start, size = 0, 16
    while start < levels.size:
        known = np.flatnonzero(~np.isnan(levels[start : start + size]))
        if known.size:
            return float(levels[start + known[0]])
        start, size = start + size, size * 4
    return None


def count(flows: Flows, values: np.ndarray) -> dict[str, int]:
    """Returns the number of each kind, including events that are not listed."""
    if values.size == 0:
        return dict.fromkeys(KINDS, 0)
    ever = int(flows.ever.sum())
    entered = ever - int((~np.isnan(values[0])).sum())
    exited = ever - int((~np.isnan(values[-1])).sum())
    entering, exiting = int(flows.entering.sum()), int(flows.exiting.sum())
    return {"entered": entered, "exited": exited, "gap": exiting - exited, "resumed": entering - entered}


def note(found: Notes, counts: dict[str, Any], quality: Quality) -> None:
    """Builds the execution's finding: the number of events, and the largest ones."""
    total = sum(counts.values())
    if total == 0:
        return
    largest = sorted(found, key=lambda one: -abs(one["change"]))[:_IN_FINDING]
    chosen = [one for one in found if any(one is other for other in largest)]
    kinds = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind])
    names = list(dict.fromkeys(str(one["entity"]) for one in largest))
    shown = ", ".join(names[:5]) + (" …" if len(names) > 5 else "")
    quality.note(
        "coverage_events",
        f"entities entered or left: {kinds}; the largest: {shown}; their levels count as coverage_change, not as flow",
        total=total,
        **counts,
        events=[
            {**{key: one[key] for key in ("period", "kind", "value", "change")}, "entity": clipped(str(one["entity"]), _NAME)}
            for one in chosen
        ],
        listed=len(chosen),
    )
