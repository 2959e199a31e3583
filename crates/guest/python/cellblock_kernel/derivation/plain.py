"""Values of Python and its data libraries as plain JSON values.

Numbers that JSON lacks (NaN and the infinities), `NaT` and `NA` become null, and are counted; dates and times become ISO 8601,
durations seconds, `Decimal` a float, a frame a list of records, a series with an index of its own an object.
"""

import datetime
import decimal
import enum
import math
import pathlib
import sys
import uuid
from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass
from typing import Any, NoReturn

from cellblock_kernel.outputs.primitive import qualified

_DEPTH = 100
_EXACT = (str, bool, int, type(None))


class NotPlain(TypeError):
    """A value that has no JSON form."""


class Plain:
    """Turns one value into JSON values."""

    def __init__(self, root: str) -> None:
        self._root = root
        # Places of numbers that JSON lacks.
        self.absent = 0
        self.first_absent: str | None = None
        self._within: set[int] = set()

    def value(self, value: Any, path: str = "", depth: int = 0) -> Any:
        """The JSON value of anything that has one; `path` says where it stands."""
        if type(value) in _EXACT:
            return value
        if type(value) is float:
            return value if math.isfinite(value) else self._absent(path)
        if depth > _DEPTH:
            self._refuse(path, f"nests deeper than {_DEPTH} levels", "flatten it")
        if isinstance(value, Mapping | list | tuple | Set) or is_dataclass(value):
            if id(value) in self._within:
                self._refuse(path, "contains itself", "leave the reference to its container out")
            self._within.add(id(value))
            try:
                return self._container(value, path, depth)
            finally:
                self._within.discard(id(value))
        return self._scalar(value, path, depth)

    def _container(self, value: Any, path: str, depth: int) -> Any:
        if isinstance(value, Mapping):
            return {self._key(key, path): self.value(item, f"{path}[{key!r}]", depth + 1) for key, item in value.items()}
        if is_dataclass(value) and not isinstance(value, type):
            return {it.name: self.value(getattr(value, it.name), f"{path}.{it.name}", depth + 1) for it in fields(value)}
        if isinstance(value, tuple) and hasattr(value, "_asdict"):
            return self._container(value._asdict(), path, depth)
        items = value
        if isinstance(value, Set):
            try:
                items = sorted(value)
            except TypeError:
                items = list(value)
        return [self.value(item, f"{path}[{number}]", depth + 1) for number, item in enumerate(items)]

    def _key(self, key: Any, path: str) -> str:
        if type(key) is str:
            return key
        shown = self.value(key, path, _DEPTH)
        if isinstance(shown, list | dict):
            self._refuse(path, f"has the key {key!r}, and keys of JSON are text", "join its parts to one text")
        return shown if isinstance(shown, str) else {None: "null", True: "true", False: "false"}.get(shown, str(shown))

    def _scalar(self, value: Any, path: str, depth: int) -> Any:
        if isinstance(value, enum.Enum):
            return self.value(value.value, path, depth + 1)
        if isinstance(value, str | bool | int):
            return next(base(value) for base in (str, bool, int) if isinstance(value, base))
        if isinstance(value, float):
            return self.value(float(value), path)
        if isinstance(value, decimal.Decimal):
            return self.value(float(value), path)
        if isinstance(value, datetime.datetime | datetime.date | datetime.time | datetime.timedelta):
            if type(value).__name__ == "NaTType":
                return self._absent(path)
            return value.total_seconds() if isinstance(value, datetime.timedelta) else value.isoformat()
        if isinstance(value, uuid.UUID | pathlib.PurePath):
            return str(value)
        return self._of_library(value, path, depth)

    def _of_library(self, value: Any, path: str, depth: int) -> Any:
        module = type(value).__module__.partition(".")[0]
        if module == "numpy":
            return self._numpy(value, path, depth)
        if module == "pandas":
            return self._pandas(value, path, depth)
        if module == "polars":
            form = getattr(value, "to_dicts", None) or getattr(value, "to_list", None)
            if form is not None:
                return self.value(form(), path, depth)
        if module == "pyarrow":
            form = getattr(value, "to_pylist", None) or getattr(value, "as_py", None)
            if form is not None:
                return self.value(form(), path, depth)
        return self._refuse(path, f"is a {qualified(value)}", "convert it to numbers, text, lists and dicts")

    def _numpy(self, value: Any, path: str, depth: int) -> Any:
        numpy: Any = sys.modules["numpy"]
        kind = getattr(getattr(value, "dtype", None), "kind", "")
        if kind == "M":
            if isinstance(value, numpy.ndarray):
                return [self._numpy(item, f"{path}[{number}]", depth) for number, item in enumerate(value)]
            return self._absent(path) if numpy.isnat(value) else str(value)
        if kind == "m" and isinstance(value, numpy.generic):
            return self._absent(path) if numpy.isnat(value) else float(value / numpy.timedelta64(1, "s"))
        if kind == "m":
            return [self._numpy(item, f"{path}[{number}]", depth) for number, item in enumerate(value)]
        if kind in "biufUO" and kind and hasattr(value, "tolist"):
            return self.value(value.tolist(), path, depth)
        return self._refuse(
            path, f"is a {qualified(value)} of type {getattr(value, 'dtype', '?')}", "convert it to numbers or text"
        )

    def _pandas(self, value: Any, path: str, depth: int) -> Any:
        pandas: Any = sys.modules["pandas"]
        if value is pandas.NaT or value is pandas.NA:
            return self._absent(path)
        if isinstance(value, pandas.DataFrame):
            return self.records(value, path, depth)
        if isinstance(value, pandas.Series):
            items = value.tolist()
            if isinstance(value.index, pandas.RangeIndex):
                return self.value(items, path, depth)
            return self.value(self._unique(value.index, path, items), path, depth)
        if isinstance(value, pandas.Index) or hasattr(value, "tolist"):
            return self.value(value.tolist(), path, depth)
        if isinstance(value, pandas.Period | pandas.Interval):
            return str(value)
        return self._refuse(path, f"is a {qualified(value)}", "convert it to numbers, text, lists and dicts")

    def _unique(self, index: Any, path: str, items: list[Any]) -> dict[str, Any]:
        if not index.is_unique:
            self._refuse(path, "is a series whose index has duplicates", "aggregate them, or pass `.reset_index()`")
        keys = [" / ".join(self._key(part, path) for part in key) if isinstance(key, tuple) else key for key in index.tolist()]
        return dict(zip(keys, items, strict=True))

    def records(self, frame: Any, path: str, depth: int = 0) -> list[dict[str, Any]]:
        """The rows of a data frame of pandas, its index among the columns unless it only counts."""
        pandas: Any = sys.modules["pandas"]
        if not isinstance(frame.index, pandas.RangeIndex) or frame.index.name is not None:
            frame = frame.reset_index()
        joined = [" / ".join(map(str, name)).strip(" /") if isinstance(name, tuple) else name for name in frame.columns]
        names = [self._key(name, path) for name in joined]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            self._refuse(path, f"has two columns {twice!r}", "rename one")
        columns = [
            [self.value(item, f"{path}[{row}][{name!r}]", depth + 2) for row, item in enumerate(frame.iloc[:, number].tolist())]
            for number, name in enumerate(names)
        ]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def _absent(self, path: str) -> None:
        self.absent += 1
        self.first_absent = self.first_absent or f"{self._root}{path}"

    def _refuse(self, path: str, why: str, repair: str) -> NoReturn:
        raise NotPlain(f"{self._root}{path} {why}, which JSON cannot hold: {repair}")
