"""Values of Python and its data libraries as plain JSON values.

Numbers that JSON lacks (NaN and the infinities), `NaT` and `NA` become null and are counted; dates and times
become ISO 8601, durations seconds, `Decimal` a number, a frame a list of records, a series with its own index
an object. Keys become text. A value that would be changed (in its digits, in its nanoseconds, or by two equal
keys) is rejected with its path.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import math
import pathlib
import sys
import uuid
from collections.abc import Iterable, Mapping, Set
from dataclasses import fields, is_dataclass
from typing import Any, NoReturn

from cellblock_kernel.outputs.primitive import qualified, with_article

_DEPTH = 100
# Integers of 64 bits, signed or unsigned: readers of JSON round larger ones.
_LEAST, _MOST = -(2**63), 2**64 - 1
_ROUNDED = "numbers of JSON cannot hold exactly"
_ROUND_IT = "pass str(value), or float(value) to round it"


class NotPlain(TypeError):
    """A value that has no JSON form."""

    # Tracebacks show this name.
    __module__ = "cellblock_kernel.derivation.plain"


class Plain:
    """Turns one value into JSON values."""

    def __init__(self, root: str) -> None:
        self._root = root
        # Paths of numbers that JSON lacks; the infinite ones among them are not missing data.
        self.absent = 0
        self.infinite = 0
        self.first_absent: str | None = None
        self.first_infinite: str | None = None
        self._within: set[int] = set()

    def value(self, value: Any, path: str = "", depth: int = 0) -> Any:
        """Returns the JSON form of a value; `path` is its location."""
        if value is None or type(value) is bool:
            return value
        if type(value) is str:
            return self._text(value, path)
        if type(value) is int:
            return self._integer(value, path)
        if type(value) is float:
            return value if math.isfinite(value) else self._absent(path, infinite=math.isinf(value))
        if depth > _DEPTH:
            self._refuse(path, f"nests deeper than {_DEPTH} levels", "flatten it")
        if isinstance(value, (Mapping, list, tuple, Set)) or is_dataclass(value):
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
            return self._object(value.items(), path, depth)
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

    def _object(self, pairs: Iterable[tuple[Any, Any]], path: str, depth: int) -> dict[str, Any]:
        pairs = list(pairs)
        names = self._names([key for key, _ in pairs], "keys", path)
        return {name: self.value(item, f"{path}[{key!r}]", depth + 1) for name, (key, item) in zip(names, pairs)}

    def _names(self, labels: list[Any], what: str, path: str, levels: bool = False) -> list[str]:
        """Returns keys or columns as text, without duplicates; multi-level keys are joined."""
        seen: dict[str, Any] = {}
        for label in labels:
            if levels and isinstance(label, tuple):
                name = " / ".join(part for part in (self._key(part, path) for part in label) if part)
            else:
                name = self._key(label, path)
            if name in seen:
                self._refuse(path, f"has the {what} {seen[name]!r} and {label!r}, both of them {name!r} as text", "rename one")
            seen[name] = label
        return list(seen)

    def _key(self, key: Any, path: str) -> str:
        if type(key) is str:
            return self._text(key, path)
        shown = self.value(key, path, _DEPTH)
        if isinstance(shown, (list, dict)):
            self._refuse(path, f"has the key {key!r}, and keys of JSON are text", "join its parts to one text")
        return shown if isinstance(shown, str) else json.dumps(shown)

    def _text(self, value: str, path: str) -> str:
        try:
            value.encode()
        except UnicodeEncodeError:
            # Half of a surrogate pair is not a character, and UTF-8 cannot encode it.
            self._refuse(path, f"has a lone surrogate: {value!a:.80}", "replace it, or pass the bytes as base64")
        return value

    def _integer(self, value: int, path: str) -> int:
        if not _LEAST <= value <= _MOST:
            self._refuse(path, "is an integer of more than 64 bits", "pass str(value), or float(value) to round it", _ROUNDED)
        return value

    def _decimal(self, value: decimal.Decimal, path: str) -> float | None:
        if not value.is_finite():
            return self._absent(path, infinite=value.is_infinite())
        rounded = float(value)
        if not math.isfinite(rounded) or decimal.Decimal(repr(rounded)) != value:
            self._refuse(path, f"is {value!r}", _ROUND_IT, _ROUNDED)
        return rounded

    def _scalar(self, value: Any, path: str, depth: int) -> Any:
        if isinstance(value, enum.Enum):
            return self.value(value.value, path, depth + 1)
        # With the base class's method: a subclass may print another value.
        if isinstance(value, str):
            return self._text(str.__str__(value), path)
        if isinstance(value, int):
            return self._integer(int.__int__(value), path)
        if isinstance(value, float):
            return self.value(float.__float__(value), path)
        if isinstance(value, decimal.Decimal):
            return self._decimal(value, path)
        if isinstance(value, (datetime.datetime, datetime.date, datetime.time, datetime.timedelta)):
            if type(value).__name__ == "NaTType":
                return self._absent(path)
            return value.total_seconds() if isinstance(value, datetime.timedelta) else value.isoformat()
        if isinstance(value, (uuid.UUID, pathlib.PurePath)):
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
                self._check_polars(value, path)
                return self.value(form(), path, depth)
        if module == "pyarrow":
            form = getattr(value, "to_pylist", None) or getattr(value, "as_py", None)
            if form is not None:
                self._names(getattr(value, "column_names", []), "columns", path)
                if "time64[ns]" in str(getattr(value, "schema", None) or value.type):
                    self._refuse(path, "has times of day in nanoseconds", "cast them to time64('us')", "Python cannot hold")
                try:
                    made = form()
                except ValueError as error:
                    self._refuse(path, f"is {with_article(qualified(value))} that Python cannot hold ({error})", "cast it first")
                return self.value(made, path, depth)
        return self._refuse(path, f"is {with_article(qualified(value))}", "convert it to numbers, text, lists and dicts")

    def _check_polars(self, value: Any, path: str) -> None:
        """Rejects nanoseconds: Python's times end at microseconds, and Polars truncates when it creates them."""
        polars: Any = sys.modules["polars"]
        for series in [value] if isinstance(value, polars.Series) else value.get_columns():
            at = path if series is value else f"{path}[{series.name!r}]"
            if isinstance(series.dtype, polars.Struct):
                self._check_polars(series.struct.unnest(), at)
            elif isinstance(series.dtype, (polars.List, polars.Array)):
                self._check_polars(series.explode(), at)
            elif series.dtype == polars.Time or getattr(series.dtype, "time_unit", None) == "ns":
                below = series.to_physical() % 1000 != 0
                if below.any():
                    self._refuse(at, "has times with nanoseconds", 'round it with .dt.round("1us"), or pass .dt.to_string()')

    def _numpy(self, value: Any, path: str, depth: int) -> Any:
        numpy: Any = sys.modules["numpy"]
        kind = getattr(getattr(value, "dtype", None), "kind", "")
        if kind and kind in "mM" and isinstance(value, numpy.ndarray):
            if value.ndim:
                return [self._numpy(item, f"{path}[{number}]", depth) for number, item in enumerate(value)]
            value = value[()]
        if kind == "M":
            return self._absent(path) if numpy.isnat(value) else str(value)
        if kind == "m":
            return self._duration(value, path)
        if kind == "f" and value.dtype.itemsize > 8:
            rounded = value.astype("float64")
            if not numpy.array_equal(rounded, value, equal_nan=True):
                self._refuse(path, f"has digits of {value.dtype}", 'pass .astype("float64") to round it', _ROUNDED)
            value = rounded
        if kind and kind in "biufUTO" and hasattr(value, "tolist"):
            return self.value(value.tolist(), path, depth)
        return self._refuse(
            path, f"is {with_article(qualified(value))} of type {getattr(value, 'dtype', '?')}", "convert it to numbers or text"
        )

    def _duration(self, value: Any, path: str) -> float | None:
        numpy: Any = sys.modules["numpy"]
        if numpy.isnat(value):
            return self._absent(path)
        try:
            return float(value / numpy.timedelta64(1, "s"))
        except TypeError:
            return self._refuse(path, f"is {value!r}, whose unit has no length in seconds", "convert it to days or seconds")

    def _pandas(self, value: Any, path: str, depth: int) -> Any:
        pandas: Any = sys.modules["pandas"]
        if value is pandas.NaT or value is pandas.NA:
            return self._absent(path)
        if isinstance(value, pandas.DataFrame):
            return self.records(value, path, depth)
        if isinstance(value, pandas.Series):
            items = value.tolist()
            if _only_counts(value.index):
                return self.value(items, path, depth)
            if not value.index.is_unique:
                self._refuse(path, "is a series whose index has duplicates", "aggregate them, or pass `.reset_index()`")
            labels = value.index.tolist()
            names = self._names(labels, "labels", path, levels=True)
            places = (f"{path}[{label!r}]" for label in labels)
            return {name: self.value(*item, depth + 1) for name, item in zip(names, zip(items, places))}
        if isinstance(value, pandas.Index) or hasattr(value, "tolist"):
            return self.value(value.tolist(), path, depth)
        if isinstance(value, (pandas.Period, pandas.Interval)):
            return str(value)
        return self._refuse(path, f"is {with_article(qualified(value))}", "convert it to numbers, text, lists and dicts")

    def records(self, frame: Any, path: str, depth: int = 0) -> list[dict[str, Any]]:
        """Returns the rows of a pandas data frame, with its index among the columns unless it only counts."""
        if not _only_counts(frame.index):
            try:
                frame = frame.reset_index()
            except ValueError as error:
                self._refuse(path, f"has an index that cannot become a column ({error})", "pass .reset_index(names=…)")
        names = self._names(list(frame.columns), "columns", path, levels=True)
        columns = [
            [self.value(item, f"{path}[{row}][{name!r}]", depth + 2) for row, item in enumerate(frame.iloc[:, number].tolist())]
            for number, name in enumerate(names)
        ]
        return [dict(zip(names, row)) for row in zip(*columns)]

    def _absent(self, path: str, infinite: bool = False) -> None:
        self.absent += 1
        self.first_absent = self.first_absent or f"{self._root}{path}"
        if infinite:
            self.infinite += 1
            self.first_infinite = self.first_infinite or f"{self._root}{path}"

    def _refuse(self, path: str, why: str, repair: str, cause: str = "JSON cannot hold") -> NoReturn:
        raise NotPlain(f"{self._root}{path} {why}, which {cause}: {repair}")


def _only_counts(index: Any) -> bool:
    """Returns whether an index just numbers rows from 0, as a default one does."""
    pandas: Any = sys.modules["pandas"]
    return isinstance(index, pandas.RangeIndex) and index.name is None and index.start == 0 and index.step == 1
