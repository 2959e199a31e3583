"""polars frames and series; a lazy frame is a plan and is shown as text."""

import io
from typing import Any

from cellblock_kernel.cell.channel import Buffer
from cellblock_kernel.outputs import arrow

_BytesIO = io.BytesIO


def wrap(value: Any, polars: Any) -> "PolarsTable | None":
    """Wraps a frame or series."""
    if isinstance(value, polars.DataFrame):
        return PolarsTable(value, polars, False)
    if isinstance(value, polars.Series):
        return PolarsTable(value.alias(value.name or "value").to_frame(), polars, True)
    return None


class PolarsTable:
    """A polars frame."""

    library = "polars"

    def __init__(self, frame: Any, polars: Any, series: bool) -> None:
        self.series = series
        self._frame = frame
        self._polars = polars

    def rows(self) -> int:
        """Counts its rows."""
        return int(self._frame.height)

    def columns(self) -> list[dict[str, str]]:
        """Names and types of its columns."""
        return [{"name": name, "dtype": str(dtype)} for name, dtype in self._frame.schema.items()]

    def index(self) -> list[str]:
        """Returns nothing: polars has no index."""
        return []

    def estimate(self) -> int:
        """Estimates its size as Arrow, in bytes."""
        return int(self._frame.estimated_size())

    def ends(self, head: int, tail: int) -> "PolarsTable":
        """Keeps only the first and last rows."""
        tail = min(tail, self._frame.height - head)
        parts = [self._frame.head(head), self._frame.tail(tail)]
        return PolarsTable(self._polars.concat(parts), self._polars, self.series)

    def write(self) -> Buffer:
        """Serializes it, with pyarrow if the image has it."""
        oldest = self._polars.CompatLevel.oldest()
        frame = self._plain()
        pa = arrow.library()
        if pa is not None:
            arrays = [_array(column, oldest) for column in frame.get_columns()]
            return arrow.stream(pa.Table.from_arrays(arrays, names=frame.columns))
        height = max(1, frame.height)
        slices = [frame.slice(start, arrow.BATCH_ROWS) for start in range(0, height, arrow.BATCH_ROWS)]
        buffer = _BytesIO()
        self._polars.concat(slices, rechunk=False).write_ipc_stream(buffer, compression="uncompressed", compat_level=oldest)
        return buffer.getbuffer()

    def _plain(self) -> Any:
        """Casts types that have no plain Arrow form: objects, categories, 128-bit integers."""
        polars = self._polars
        columns = []
        for column in self._frame.get_columns():
            if _name(column.dtype) == "Object":
                texts = [None if value is None else str(value) for value in column]
                column = polars.Series(column.name, texts, dtype=polars.String)
            else:
                wanted = _plain_type(column.dtype, polars)
                column = column if wanted == column.dtype else column.cast(wanted)
            columns.append(column)
        return polars.DataFrame(columns) if columns else self._frame


def _name(dtype: Any) -> str:
    return dtype.__name__ if isinstance(dtype, type) else type(dtype).__name__


def _plain_type(dtype: Any, polars: Any) -> Any:
    """Returns a type that has a plain Arrow form, as have all of its parts."""
    kind = _name(dtype)
    if kind in ("Categorical", "Enum", "Int128", "UInt128"):
        return polars.String
    if kind == "List":
        return polars.List(_plain_type(dtype.inner, polars))
    if kind == "Array":
        return polars.Array(_plain_type(dtype.inner, polars), dtype.size)
    if kind == "Struct":
        return polars.Struct({field.name: _plain_type(field.dtype, polars) for field in dtype.fields})
    return dtype


def _array(column: Any, oldest: Any) -> Any:
    """Converts one column; one that Arrow lacks becomes text."""
    pa = arrow.library()
    try:
        return arrow.plain(column.to_arrow(compat_level=oldest))
    except (pa.ArrowException, ValueError, TypeError):
        return arrow.texts(column.to_list())
