"""pandas frames as tables with unique names of columns, and back with index, labels and types."""

from __future__ import annotations

import json
from typing import Any

from cellblock_kernel.datasets import pandas_columns
from cellblock_kernel.datasets.form import NotPublishable, arrow, combined, embedded, unembedded
from cellblock_kernel.outputs.arrow import unique


def encode(frame: Any, pandas: Any) -> tuple[Any, dict[str, Any]]:
    """Returns a frame as an Arrow table, and what restores it."""
    index, levels = _index(frame.index, pandas)
    labels = _labels(frame.columns, pandas)
    parts = [(level, f"index level {number}") for number, level in enumerate(levels)]
    parts += [(frame.iloc[:, number], f"column {frame.columns[number]!r}") for number in range(frame.shape[1])]
    arrays, forms = [], []
    for values, what in parts:
        array, form = pandas_columns.encode(values, what, pandas)
        arrays.append(array)
        forms.append(form)
    names = unique([*_level_names(frame.index, len(levels)), *frame.columns])
    form = {"index": index, "labels": labels, "columns": forms, "attrs": _attrs(frame.attrs)}
    return arrow().Table.from_arrays(arrays, names=names), form


def columns(frame: Any, names: list[str]) -> tuple[list[dict[str, str]], list[str]]:
    """Returns names and types of a frame's columns, and which of them are its index."""
    count = len(names) - frame.shape[1]
    levels = [frame.index.get_level_values(level).dtype for level in range(count)]
    types = [*levels, *frame.dtypes]
    return [{"name": name, "dtype": str(dtype)} for name, dtype in zip(names, types)], names[:count]


def _level_names(index: Any, count: int) -> list[object]:
    usual = ["index"] if count == 1 else [f"level_{level}" for level in range(count)]
    return [name if name is not None else usual[level] for level, name in enumerate(index.names[:count])]


def _index(index: Any, pandas: Any) -> tuple[dict[str, Any], list[Any]]:
    names = [_packed_name(name) for name in index.names]
    if isinstance(index, pandas.RangeIndex):
        return {"range": [index.start, index.stop, index.step], "names": names}, []
    if isinstance(index, pandas.MultiIndex):
        levels = [index.get_level_values(level) for level in range(index.nlevels)]
        return {"levels": index.nlevels, "names": names}, levels
    return {"levels": 0, "names": names, "freq": getattr(index, "freqstr", None)}, [index]


def _packed_name(name: Any) -> Any:
    """Returns the name of an index level for JSON, which has no tuples."""
    if isinstance(name, tuple):
        return {"tuple": [_packed_name(part) for part in name]}
    if type(name) in (str, int, float, bool, type(None)):
        return name
    raise NotPublishable(f"an index has the name {name!r}, which cannot be stored; rename it to a string with .rename_axis")


def _unpacked_name(name: Any) -> Any:
    return tuple(map(_unpacked_name, name["tuple"])) if isinstance(name, dict) else name


def _labels(columns: Any, pandas: Any) -> dict[str, Any]:
    form, levels = _index(columns, pandas)
    form["values"] = [_embed(level, "the names of the columns", pandas) for level in levels]
    return form


def _embed(values: Any, what: str, pandas: Any) -> dict[str, Any]:
    array, form = pandas_columns.encode(values, what, pandas)
    return {"values": embedded(array, what), "form": form}


def _attrs(attrs: dict[Any, Any]) -> dict[str, Any]:
    try:
        text = json.dumps(attrs, allow_nan=False)
        if json.loads(text) == attrs:
            return attrs
    except (TypeError, ValueError, RecursionError):
        pass
    raise NotPublishable("the frame's .attrs cannot be stored as JSON; remove what is not text, a number, a list or a dict")


def decode(table: Any, form: dict[str, Any], pandas: Any) -> Any:
    """Returns the frame that `encode` was given."""
    arrays = [pandas_columns.decode(combined(column), part, pandas) for column, part in zip(table.columns, form["columns"])]
    count = form["index"].get("levels", -1)
    levels = 0 if count == -1 else max(count, 1)
    index = _restored(form["index"], arrays[:levels], pandas)
    rest = {number: values.set_axis(index) for number, values in enumerate(arrays[levels:])}
    frame = pandas.DataFrame(rest, index=index, copy=False)
    labels = form["labels"]
    frame.columns = _restored(labels, [_unembed(part, pandas) for part in labels["values"]], pandas)
    frame.attrs = form["attrs"]
    return frame


def _unembed(part: dict[str, Any], pandas: Any) -> Any:
    return pandas_columns.decode(unembedded(part["values"]), part["form"], pandas)


def _restored(form: dict[str, Any], levels: list[Any], pandas: Any) -> Any:
    names = [_unpacked_name(name) for name in form["names"]]
    if "range" in form:
        return pandas.RangeIndex(*form["range"], name=names[0])
    if form["levels"]:
        return pandas.MultiIndex.from_arrays(levels, names=names)
    index = pandas.Index(levels[0], dtype=levels[0].dtype, name=names[0])
    if form["freq"] is not None and hasattr(index, "freq") and index.freq is None:
        index.freq = form["freq"]
    return index
