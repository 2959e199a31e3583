"""Diagnostics of a helper, kept for the execution's findings and for the `attrs` of its result."""

from __future__ import annotations

import datetime
import math
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from cellblock_kernel.library import findings

Frame = TypeVar("Frame", pd.DataFrame, pd.Series)


class Notes(list):  # type: ignore[type-arg]
    """Dicts for a frame's `attrs`.

    pandas deep-copies `attrs` whenever a column is selected, which would cost more than the work on it. The
    list is copied, its dicts are shared. It is pickled as a plain list, so that readers of a pickled frame need
    no kernel.
    """

    def __deepcopy__(self, memo: dict[int, Any]) -> Notes:
        return Notes(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


class Quality:
    """Collects the diagnostics of one call."""

    def __init__(self) -> None:
        self.found = Notes()

    def note(self, code: str, message: str, series: str | None = None, **details: Any) -> None:
        """Records one diagnostic; details become plain JSON values."""
        entry: dict[str, Any] = {"code": code, "message": message}
        if series is not None:
            entry["series"] = series
        if details:
            entry["details"] = plain(details)
        self.found.append(entry)

    def report(self) -> None:
        """Sends the diagnostics with the execution, once, when the call has succeeded."""
        for entry in self.found:
            findings.add(**entry)

    def attach(self, frame: Frame) -> Frame:
        """Puts the diagnostics into a frame's `attrs["data_quality"]`."""
        frame.attrs["data_quality"] = Notes(self.found)
        return frame


def plain(value: Any) -> Any:
    """Returns the JSON value for a scalar, a mapping or a sequence: times as ISO 8601, non-finite numbers as
    null."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value is pd.NaT or isinstance(value, (bool, int)):
        return None if value is pd.NaT else value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    return clipped(str(value))


def clipped(text: str, most: int = 120) -> str:
    """Returns a text of limited length."""
    return text if len(text) <= most else text[: most - 1] + "…"


def listed(names: Any, most: int = 8) -> str:
    """Returns names for a message: the first few, and the number of others."""
    names = [clipped(repr(name), 60) for name in names]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
