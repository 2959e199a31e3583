"""Samples of a run by series, and numbers for people."""

from __future__ import annotations

import math
from collections.abc import Iterable


class Samples:
    """Everything that a run measured. A series is named `who/what`, such as `cellblock/warm`."""

    def __init__(self, values: dict[str, list[float]]) -> None:
        """Takes the samples of each series."""
        self.values = values

    def series(self) -> list[str]:
        """Returns the names of all series."""
        return sorted(self.values)

    def count(self, series: str) -> int:
        """Returns the number of samples of a series."""
        return len(self.values.get(series, []))

    def quantile(self, series: str, quantile: float) -> float | None:
        """Returns the nearest-rank quantile; `None` without samples."""
        ordered = sorted(self.values.get(series, []))
        return ordered[max(math.ceil(len(ordered) * quantile), 1) - 1] if ordered else None

    def median(self, series: str) -> float | None:
        """Returns the median of a series."""
        return self.quantile(series, 0.5)

    def ours(self, what: str) -> float | None:
        """Returns the median of a series of Cellblock."""
        return self.median(f"cellblock/{what}")

    def sum(self, series: Iterable[str]) -> float | None:
        """Returns the sum of medians, if there are some and all of them were measured."""
        medians = [self.median(it) for it in series]
        return sum(medians) if medians and None not in medians else None  # type: ignore[arg-type]


def number(value: float) -> str:
    """Returns three digits that count, with thousands set apart."""
    if value >= 1000:
        return f"{value:,.0f}"
    places = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 else 3
    text = f"{value:.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
