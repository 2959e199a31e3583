"""pandas frames and series, column by column, so that one odd column does not spoil a table."""

from datetime import time
from typing import Any

from cellblock_kernel.cell.channel import Buffer
from cellblock_kernel.outputs import arrow

_SAMPLE = 200
# Assumed size of a Python object's text in bytes if a sample is empty.
_OBJECT_BYTES = 16


def wrap(value: Any, pandas: Any) -> "PandasTable | None":
    """Wraps a frame or series; an index and other pandas values are shown as text."""
    if isinstance(value, pandas.DataFrame):
        return PandasTable(value, pandas, False)
    if isinstance(value, pandas.Series):
        return PandasTable(value.to_frame("value" if value.name is None else value.name), pandas, True)
    return None


class PandasTable:
    """A pandas frame."""

    library = "pandas"

    def __init__(self, frame: Any, pandas: Any, series: bool) -> None:
        self.series = series
        self._frame = frame
        self._pandas = pandas
        index = frame.index
        self._levels: list[Any] = []
        self._level_names: list[object] = []
        # A table without columns has no Parquet form, and would lose its rows.
        if not _is_plain_range(index, pandas) or not len(frame.columns):
            count = index.nlevels
            self._levels = [index] if count == 1 else [index.get_level_values(level) for level in range(count)]
            self._level_names = [
                name if name is not None else ("index" if count == 1 else f"level_{level}")
                for level, name in enumerate(index.names)
            ]
        self._names = arrow.unique([*self._level_names, *frame.columns])

    def rows(self) -> int:
        """Counts its rows."""
        return len(self._frame)

    def columns(self) -> list[dict[str, str]]:
        """Names and types of its columns, those of the index first."""
        types = [level.dtype for level in self._levels] + list(self._frame.dtypes)
        return [{"name": name, "dtype": str(dtype)} for name, dtype in zip(self._names, types)]

    def index(self) -> list[str]:
        """Returns the columns that were the index."""
        return self._names[: len(self._levels)]

    def _all(self) -> list[Any]:
        columns = [self._frame.iloc[:, number] for number in range(self._frame.shape[1])]
        return [*self._levels, *columns]

    def estimate(self) -> int:
        """Estimates its size as Arrow, in bytes."""
        rows = len(self._frame)
        return sum(_column_bytes(column, rows) for column in self._all())

    def ends(self, head: int, tail: int) -> "PandasTable":
        """Keeps only the first and last rows."""
        rows = len(self._frame)
        tail = min(tail, rows - head)
        positions = [*range(head), *range(rows - tail, rows)]
        part = PandasTable(self._frame.iloc[positions], self._pandas, self.series)
        if not self._levels:
            part._levels, part._level_names, part._names = [], [], self._names
        return part

    def write(self) -> Buffer:
        """Serializes it."""
        pa = arrow.library()
        arrays = [_array(column, self._pandas) for column in self._all()]
        if not arrays:
            return arrow.stream(pa.table({}))
        return arrow.stream(pa.Table.from_arrays(arrays, names=self._names))


def _is_plain_range(index: Any, pandas: Any) -> bool:
    return isinstance(index, pandas.RangeIndex) and index.start == 0 and index.step == 1 and index.name is None


def _column_bytes(column: Any, rows: int) -> int:
    if str(column.dtype) == "object":
        if not rows:
            return 0
        step = max(1, rows // _SAMPLE)
        sample = column[::step] if not hasattr(column, "iloc") else column.iloc[::step]
        sizes = [_object_bytes(value) for value in sample]
        return rows * (sum(sizes) // len(sizes) + 9)
    if isinstance(column.dtype, _categorical_type(column)):
        categories = column.dtype.categories
        widest = max((_object_bytes(value) for value in categories[:_SAMPLE]), default=_OBJECT_BYTES)
        return rows * (widest + 9)
    return int(column.memory_usage(index=False) if hasattr(column, "iloc") else column.memory_usage())


def _categorical_type(column: Any) -> Any:
    # The class is found by name because an older pandas has it elsewhere.
    return type(column.dtype) if type(column.dtype).__name__ == "CategoricalDtype" else ()


def _object_bytes(value: Any) -> int:
    if isinstance(value, (str, bytes, bytearray)):
        return len(value)
    if isinstance(value, (list, tuple, dict)):
        return _OBJECT_BYTES * max(1, len(value))
    nbytes = getattr(value, "nbytes", None)
    return nbytes if isinstance(nbytes, int) else _OBJECT_BYTES


def _array(column: Any, pandas: Any) -> Any:
    """Converts one column to an Arrow array of a plain type."""
    pa = arrow.library()
    dtype = column.dtype
    kind = type(dtype).__name__
    if kind in ("PeriodDtype", "IntervalDtype"):
        return arrow.texts([None if pandas.isna(value) else str(value) for value in column])
    if kind == "SparseDtype":
        import numpy

        column = pandas.Series(numpy.asarray(column))
    elif getattr(dtype, "kind", "") == "c":
        return arrow.texts([str(value) for value in column])
    if kind == "CategoricalDtype":
        column = pandas.Series(column.astype(dtype.categories.dtype)) if _castable(column, dtype) else column.astype(object)
    try:
        made = arrow.plain(pa.array(column, from_pandas=True))
        if pa.types.is_struct(made.type):
            raise pa.ArrowTypeError  # structs of a mixed column would invent fields
        if _has_times(made.type, pa) and any(map(_has_zone, column)):
            raise pa.ArrowTypeError  # Arrow has no times with a zone
        return made
    except (pa.ArrowException, ValueError, TypeError, OverflowError, UnicodeError):
        return arrow.texts([_value(value, pandas) for value in column])


def _has_times(kind: Any, pa: Any) -> bool:
    return pa.types.is_time(kind) or (pa.types.is_nested(kind) and "time" in str(kind))


def _has_zone(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_zone, value))
    return isinstance(value, time) and value.tzinfo is not None


def _castable(column: Any, dtype: Any) -> bool:
    if getattr(dtype.categories.dtype, "kind", "O") not in "iub":
        return True
    # Integers cannot represent a missing value.
    return not bool(column.isna().any())


def _value(value: Any, pandas: Any) -> Any:
    missing = pandas.isna(value) if not hasattr(value, "__len__") else False
    if missing is True:
        return None
    return value.tolist() if hasattr(value, "tolist") and hasattr(value, "dtype") and hasattr(value, "shape") else value
