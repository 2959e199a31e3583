"""pyarrow tables and record batches."""

from typing import Any

from cellblock_kernel.cell.channel import Buffer
from cellblock_kernel.outputs import arrow


def wrap(value: Any, pyarrow: Any) -> "PyarrowTable | None":
    """Wraps a table or a record batch."""
    if isinstance(value, pyarrow.Table):
        return PyarrowTable(value, pyarrow)
    if isinstance(value, pyarrow.RecordBatch):
        return PyarrowTable(pyarrow.Table.from_batches([value]), pyarrow)
    return None


class PyarrowTable:
    """A pyarrow table."""

    library = "pyarrow"
    series = False

    def __init__(self, table: Any, pyarrow: Any) -> None:
        self._table = table
        self._pyarrow = pyarrow
        self._names = arrow.unique(table.column_names)

    def rows(self) -> int:
        """Counts its rows."""
        return int(self._table.num_rows)

    def columns(self) -> list[dict[str, str]]:
        """Names and types of its columns."""
        types = self._table.schema.types
        return [{"name": name, "dtype": str(dtype)} for name, dtype in zip(self._names, types)]

    def index(self) -> list[str]:
        """Returns nothing: pyarrow has no index."""
        return []

    def estimate(self) -> int:
        """Estimates its size in bytes."""
        return int(self._table.nbytes)

    def ends(self, head: int, tail: int) -> "PyarrowTable":
        """Keeps only the first and last rows."""
        rows = self._table.num_rows
        tail = min(tail, rows - head)
        parts = [self._table.slice(0, head), self._table.slice(rows - tail, tail)]
        return PyarrowTable(self._pyarrow.concat_tables(parts), self._pyarrow)

    def write(self) -> Buffer:
        """Serializes it."""
        arrays = [arrow.plain(column) for column in self._table.columns]
        if not arrays:
            return arrow.stream(self._table)
        return arrow.stream(self._pyarrow.Table.from_arrays(arrays, names=self._names))
