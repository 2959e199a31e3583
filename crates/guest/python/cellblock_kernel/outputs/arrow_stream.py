"""Tables of any library that hands out Arrow streams, such as relations of DuckDB.

They are read batch by batch: the number of rows is known only at the end, and what would exceed the limit is dropped except for
the first and last rows.
"""

from __future__ import annotations

import sys
from typing import Any

from cellblock_kernel.cell.channel import Buffer
from cellblock_kernel.cell.failure import module_name, type_name
from cellblock_kernel.outputs import arrow, pyarrow_frame
from cellblock_kernel.outputs.limits import Limits

# Can be read only once, and then it is not there for the user anymore.
_ONCE = ("Reader", "Stream", "Cursor", "Iterator", "Generator")
_WITH_ZONE = "TIME WITH TIME ZONE"


class ArrowStream:
    """A value that can be read as a table, which is done when it is shown."""

    library = "pyarrow"
    series = False

    def __init__(self, value: Any) -> None:
        self._value = value

    def read(self, limits: Limits) -> pyarrow_frame.PyarrowTable | None:
        """Reads it as a whole, or its first and last rows if it is too large; None if it is a single column."""
        pa = arrow.library()
        try:
            opened = pa.RecordBatchReader.from_stream(_with_zones(self._value))
        except pa.ArrowInvalid:
            return None
        rows, kept, size, cut = 0, [], 0, False
        with opened as reader:
            for batch in reader:
                rows += batch.num_rows
                size += batch.nbytes
                kept.append(batch)
                if size > limits.output_bytes or cut:
                    kept, size, cut = _ends(kept, limits.rows_preview, pa, reader.schema), 0, True
            table = pa.Table.from_batches(kept, schema=reader.schema)
        return _Ends(table, pa, rows) if cut else pyarrow_frame.PyarrowTable(table, pa)


def wrap(value: Any) -> ArrowStream | None:
    """Wraps a value that can be read again and again."""
    kind = type(value)
    if not hasattr(kind, "__arrow_c_stream__") or hasattr(kind, "__next__") or type_name(kind).endswith(_ONCE):
        return None
    return ArrowStream(value)


class _Ends(pyarrow_frame.PyarrowTable):
    """The first and last rows of a table that is too large."""

    def __init__(self, table: Any, pyarrow: Any, rows: int) -> None:
        super().__init__(table, pyarrow)
        self._rows = rows

    def rows(self) -> int:
        """Counts the rows of the whole table."""
        return self._rows

    def estimate(self) -> int:
        """Returns the size of the largest table: the whole one cannot be sent."""
        return sys.maxsize

    def write(self) -> Buffer:
        """Is not called: the table does not fit."""
        raise AssertionError


def _ends(batches: list[Any], side: int, pa: Any, schema: Any) -> list[Any]:
    """Copies the first and last rows, so that the memory of all others is free."""
    table = pa.Table.from_batches(batches, schema=schema)
    if table.num_rows <= 2 * side:
        return batches
    # The first ones stay first: what is appended later moves only the last ones.
    ends = pa.concat_tables([table.slice(0, side), table.slice(table.num_rows - side, side)])
    copied = ends.take(pa.array(range(ends.num_rows), pa.int64()))
    found: list[Any] = copied.to_batches()
    return found


def _with_zones(value: Any) -> Any:
    """Turns times with a zone, which Arrow lacks, into text, if a relation of DuckDB has any."""
    if module_name(type(value)).split(".")[0] != "duckdb" or _WITH_ZONE not in map(str, getattr(value, "types", ())):
        return value
    columns = []
    for name, kind in zip(value.columns, value.types):
        quoted = '"' + name.replace('"', '""') + '"'
        columns.append(f"{quoted}::varchar as {quoted}" if str(kind) == _WITH_ZONE else quoted)
    return value.project(", ".join(columns))
