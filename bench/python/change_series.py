"""Measures `derive_change_series` beside a naive pandas version, which computes the same columns and names no events.

Runs with an image's Python. The kernel's package is looked for on the path, then in this repository. Prints one JSON object:
milliseconds as medians over the rounds, both versions in turn, and their ratio.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

try:
    from cellblock_kernel.timeseries import derive_change_series
except ModuleNotFoundError:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "crates/guest/python"))
    from cellblock_kernel.timeseries import derive_change_series


def population(entities: int, periods: int) -> pd.DataFrame:
    """Levels that wander; of the entities a tenth is listed late, a tenth is delisted, and a tenth has gaps."""
    random = np.random.default_rng(20240101)
    levels = 1000.0 + random.normal(size=(periods, entities)).cumsum(axis=0)
    group = max(1, entities // 10)
    for entity in range(group):
        levels[: random.integers(1, periods), entity] = np.nan
    for entity in range(group, 2 * group):
        levels[random.integers(1, periods) :, entity] = np.nan
    for entity in range(2 * group, 3 * group):
        for start in random.integers(1, periods, size=20):
            levels[start : start + random.integers(1, 30), entity] = np.nan
    index = pd.date_range("2000-01-01", periods=periods, freq="h", tz="UTC")
    return pd.DataFrame(levels, index=index, columns=[f"entity_{number}" for number in range(entities)])


def naive(table: pd.DataFrame) -> pd.DataFrame:
    """What one would write in pandas."""
    total = table.sum(axis=1)
    change = total.diff()
    stable = table.diff().sum(axis=1)
    observed = table.notna()
    before = observed.shift(fill_value=False)
    return pd.DataFrame(
        {
            "total_value": total,
            "total_change": change,
            "stable_entities_change": stable,
            "coverage_change": change - stable,
            "entering_entity_count": (observed & ~before).sum(axis=1),
            "exiting_entity_count": (before & ~observed).sum(axis=1),
        }
    )


def agree(ours: pd.DataFrame, theirs: pd.DataFrame) -> None:
    """Both must mean the same, or the times say nothing. The first row has none before it: there they differ by definition."""
    for column in theirs.columns:
        # Sums in another order differ in the last bits of the total.
        allowed = 1e-9 * float(np.abs(theirs["total_value"]).max())
        if not np.allclose(ours[column].to_numpy()[1:], theirs[column].to_numpy()[1:], rtol=0, atol=allowed):
            raise SystemExit(f"the two versions differ in {column}")


def timed(call, table: pd.DataFrame) -> float:
    """Milliseconds of one call."""
    begin = time.perf_counter()
    call(table)
    return (time.perf_counter() - begin) * 1000


def main() -> None:
    """Measures, and prints the result."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--entities", type=int, default=1000)
    options.add_argument("--periods", type=int, default=10_000)
    options.add_argument("--rounds", type=int, default=7)
    chosen = options.parse_args()
    table = population(chosen.entities, chosen.periods)
    result = derive_change_series(table)
    agree(result, naive(table))
    times = [(timed(derive_change_series, table), timed(naive, table)) for _ in range(chosen.rounds)]
    ours, theirs = (statistics.median(column) for column in zip(*times, strict=True))
    print(
        json.dumps(
            {
                "entities": chosen.entities,
                "periods": chosen.periods,
                "rounds": chosen.rounds,
                "events": sum(result.attrs["coverage_event_count"].values()),
                "derive_change_series_ms": round(ours, 1),
                "naive_pandas_ms": round(theirs, 1),
                "ratio": round(ours / theirs, 2),
            }
        )
    )


if __name__ == "__main__":
    main()
