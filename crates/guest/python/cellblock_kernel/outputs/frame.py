"""Data frames and series of pandas, polars and pyarrow, and tables of all libraries that hand out Arrow streams, as Arrow.

A table that would exceed the limit is cut to its first and last rows before it is serialized: its size is
estimated first. The user's own frame is never changed.
"""

from __future__ import annotations

import sys
from typing import Any, Protocol

from cellblock_kernel.cell.channel import Buffer
from cellblock_kernel.cell.failure import module_name, type_name
from cellblock_kernel.outputs import arrow, arrow_stream, pandas_frame, polars_frame, pyarrow_frame
from cellblock_kernel.outputs.arrow_stream import ArrowStream
from cellblock_kernel.outputs.limits import Limits
from cellblock_kernel.outputs.output import Output
from cellblock_kernel.outputs.primitive import describe_text


class Table(Protocol):
    """A table of some library that can be cut and written."""

    library: str
    series: bool

    def rows(self) -> int:
        """Counts its rows."""

    def columns(self) -> list[dict[str, str]]:
        """Names and types of its columns, those of the index first."""

    def index(self) -> list[str]:
        """Returns the columns that were the index."""

    def estimate(self) -> int:
        """Estimates its size as Arrow, in bytes."""

    def ends(self, head: int, tail: int) -> Table:
        """Keeps only the first and last rows."""

    def write(self) -> Buffer:
        """Serializes it."""


def table_of(value: Any) -> Table | ArrowStream | None:
    """Wraps a value in the table that its library needs."""
    kind = type(value)
    roots = {module_name(base).split(".")[0] for base in kind.__mro__}
    if "pandas" in roots and (pandas := sys.modules.get("pandas")) is not None:
        return pandas_frame.wrap(value, pandas)
    if "polars" in roots and (polars := sys.modules.get("polars")) is not None:
        return polars_frame.wrap(value, polars)
    if "pyarrow" in roots and (pyarrow := sys.modules.get("pyarrow")) is not None:
        return pyarrow_frame.wrap(value, pyarrow)
    return None if roots & {"pandas", "polars", "pyarrow"} else arrow_stream.wrap(value)


def describe(value: Any, name: str | None, limits: Limits) -> Output | None:
    """Describes a data frame; one that cannot be written as Arrow becomes text."""
    table = table_of(value)
    if table is None or (table.library != "polars" and arrow.library() is None):
        return None
    try:
        if not isinstance(table, ArrowStream):
            return _describe(table, name, limits)
        read = table.read(limits)
        return None if read is None else _describe(read, name, limits)
    except Exception as error:
        output = describe_text(value, name, limits)
        output.header["note"] = f"this table can not be written as Arrow: {type_name(type(error))}: {error}"[:500]
        return output


def _describe(table: Table, name: str | None, limits: Limits) -> Output:
    rows = table.rows()
    header: dict[str, Any] = {
        "type": "dataframe",
        "name": name,
        "library": table.library,
        "rows": rows,
        "columns": table.columns(),
        "index": table.index(),
        "truncated": False,
        "series": table.series,
    }
    if table.estimate() <= limits.output_bytes:
        blob = table.write()
        if memoryview(blob).nbytes <= limits.output_bytes:
            return Output(header, [blob])
    header["truncated"] = True
    side = max(1, min(limits.rows_preview, rows // 2))
    while side:
        ends = table.ends(side, side)
        if ends.estimate() <= limits.output_bytes:
            blob = ends.write()
            if memoryview(blob).nbytes <= limits.output_bytes:
                return Output(header | {"head_rows": side, "tail_rows": min(side, rows - side)}, [blob])
        side //= 2
    return Output(header | {"head_rows": 0, "tail_rows": 0})
