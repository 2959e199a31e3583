"""Reads time series in their various shapes: frames, rows, columns, pairs, and the envelopes of APIs around
them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from cellblock_kernel.outputs.limits import many
from cellblock_kernel.outputs.primitive import with_article
from cellblock_kernel.timeseries.quality import listed

# Keys under which APIs return their rows. A dict with only one of these is one source, not a source
# of that name.
_ENVELOPES = frozenset({"data", "rows", "items", "records", "result", "results", "values", "points", "series", "response"})
_SHAPES = (
    "a DataFrame, a Series with a time index, a list of dicts, a list of [time, value] pairs, a dict of columns, or a dict that "
    "holds one list of rows"
)


@dataclass
class Source:
    """One source as a table, with its name for messages."""

    name: str | None
    label: str
    table: pd.DataFrame
    is_series: bool


@dataclass
class Gathered:
    """The sources of a call, and how they were passed: `one`, `many` or `mapping`."""

    sources: list[Source]
    shape: str


def gather(given: tuple[Any, ...], names: Sequence[str] | None) -> Gathered:
    """Reads `*sources`: several sources, one list of sources, one dict of sources by name, or a single source."""
    if not given:
        raise TypeError("no source was given; pass one or more DataFrames or lists of rows")
    shape, own = "many", None
    if len(given) == 1:
        only = given[0]
        if _is_named(only):
            shape, own, given = "mapping", [str(key) for key in only], tuple(only.values())
        elif _is_list_of_sources(only):
            given = tuple(only)
        else:
            shape = "one"
    chosen = _names(names, len(given)) if names is not None else own
    sources = []
    for number, one in enumerate(given):
        label = f"source {chosen[number]!r}" if chosen else f"source {number + 1}"
        one = _converted(one)
        sources.append(Source(chosen[number] if chosen else None, label, table(one, label), isinstance(one, pd.Series)))
    return Gathered(sources, shape)


def table(given: Any, label: str = "data") -> pd.DataFrame:
    """Returns a source as a DataFrame; a Series becomes the column of its name, or `value`."""
    given = _converted(given)
    if isinstance(given, pd.Series):
        given = given.to_frame("value" if given.name is None else given.name)
    elif isinstance(given, Mapping):
        inner = _envelope(given)
        given = table(inner, label) if inner is not None else _columns(given, label)
    elif isinstance(given, (list, tuple)):
        given = _rows(given, label)
    if not isinstance(given, pd.DataFrame):
        raise TypeError(f"{label} is {with_article(type(given).__name__)}; expected {_SHAPES}")
    repeated = given.columns[given.columns.duplicated()].unique()
    if len(repeated):
        raise ValueError(f"{label} has several columns named {listed(repeated)}; rename them first")
    return given


def _converted(given: Any) -> Any:
    """Converts a frame or series of another library (polars, pyarrow) to pandas."""
    if isinstance(given, (pd.DataFrame, pd.Series, Mapping, list, tuple)):
        return given
    convert = getattr(given, "to_pandas", None)
    return convert() if callable(convert) else given


def _rows(rows: Sequence[Any], label: str) -> pd.DataFrame:
    if _are_pairs(rows):
        return pd.DataFrame([tuple(pair) for pair in rows], columns=["time", "value"])
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise TypeError(f"row {number} of {label} is {with_article(type(row).__name__)}; expected {_SHAPES}")
    return pd.DataFrame(list(rows))


def _columns(columns: Mapping[Any, Any], label: str) -> pd.DataFrame:
    odd = [key for key, value in columns.items() if isinstance(value, (str, Mapping)) or not hasattr(value, "__len__")]
    if odd:
        raise TypeError(f"{label} is a dict whose {listed(odd)} is not a column; expected {_SHAPES}")
    try:
        return pd.DataFrame(dict(columns))
    except ValueError as error:
        raise ValueError(f"the columns of {label} make no table: {error}") from error


def _envelope(given: Mapping[Any, Any], depth: int = 3) -> Any:
    """Returns the one list of rows in an API's response, possibly a few dicts deep; `None` if there is none, or
    several."""
    inner = []
    for value in given.values():
        if isinstance(value, (list, tuple)) and value and (_are_rows(value) or _are_pairs(value)):
            inner.append(value)
        elif isinstance(value, Mapping) and depth > 1:
            found = _envelope(value, depth - 1)
            if found is not None:
                inner.append(found)
    if len(given) == 1 and not inner and _ENVELOPES & set(given) and list(given.values()) == [[]]:
        return []
    return inner[0] if len(inner) == 1 else None


def _is_named(given: Any) -> bool:
    """Returns whether it holds sources by name. Empty lists count only beside others; alone they are empty
    columns."""
    if not isinstance(given, Mapping) or not all(_is_source(value) for value in given.values()):
        return False
    if all(isinstance(value, (list, tuple)) and not value for value in given.values()):
        return False
    return len(given) > 1 or not (set(given) <= _ENVELOPES and isinstance(next(iter(given.values())), (list, tuple, Mapping)))


def _is_list_of_sources(given: Any) -> bool:
    return isinstance(given, (list, tuple)) and bool(given) and not _are_pairs(given) and all(_is_source(one) for one in given)


def _is_source(given: Any) -> bool:
    if isinstance(given, pd.Series):
        return isinstance(given.index, (pd.DatetimeIndex, pd.PeriodIndex))
    if isinstance(given, (list, tuple)):
        return not given or _are_rows(given) or _are_pairs(given)
    if isinstance(given, Mapping):
        if _envelope(given) is not None:
            return True
        return bool(given) and all(hasattr(value, "__len__") and not isinstance(value, (str, Mapping)) for value in given.values())
    return isinstance(given, pd.DataFrame) or callable(getattr(given, "to_pandas", None))


def _are_rows(given: Sequence[Any]) -> bool:
    return bool(given) and all(isinstance(row, Mapping) for row in given)


def _are_pairs(given: Sequence[Any]) -> bool:
    """Returns whether it is `[[time, value], …]`, as price APIs return it."""
    return bool(given) and all(
        isinstance(pair, (list, tuple)) and len(pair) == 2 and not any(isinstance(one, (list, tuple, Mapping)) for one in pair)
        for pair in given
    )


def _names(names: Sequence[str], count: int) -> list[str]:
    if isinstance(names, str) or not all(isinstance(name, str) and name for name in names):
        raise TypeError(f"names must be a list of non-empty strings, one per source, not {names!r}")
    if len(names) != count:
        raise ValueError(f"names has {many(len(names), 'entry', 'entries')} for {many(count, 'source')}; give one per source")
    if len(set(names)) != len(names):
        raise ValueError(f"names must differ from each other: {listed(names)}")
    return list(names)
