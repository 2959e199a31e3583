"""Answers of connectors: tables as data frames, and the envelope of an answer."""

from __future__ import annotations

from typing import Any

from cellblock_kernel.library import findings
from cellblock_kernel.library.connector_errors import ParseError
from cellblock_kernel.library.reading import read_arrow
from cellblock_kernel.library.source import installed
from cellblock_kernel.outputs.limits import many
from cellblock_kernel.outputs.primitive import with_article


def frame(stream: bytes) -> Any:
    """Returns an Arrow IPC stream as a data frame."""
    pyarrow = installed("pyarrow")
    if pyarrow is not None:
        notes: list[str] = []
        value = read_arrow(pyarrow.BufferReader(stream), keep_dates=False, notes=notes)
        for note in notes:
            findings.add("infinity_to_missing", note)
        return value
    polars = installed("polars")
    if polars is not None:
        return polars.read_ipc_stream(stream)
    raise ParseError("the answer is a table, but the image has neither pyarrow nor polars")


class Fetched:
    """An answer of a connector, and where it is from."""

    def __init__(self, connector: str, function: str, envelope: dict[str, Any], data: Any) -> None:
        #: The answer, as a plain call returns it.
        self.data = data
        #: Whether it is the answer to an earlier equal call.
        self.cached: bool = envelope.get("cached", False)
        #: The connector, the function, the arguments with defaults, and when the answer arrived.
        self.provenance = {
            "connector": connector,
            "function": function,
            "arguments": envelope.get("arguments"),
            "fetched_at": envelope.get("fetched_at"),
        }
        #: Number of rows and names of columns, if the answer is a table.
        self.row_count: int | None = envelope.get("row_count")
        self.columns: list[str] = envelope.get("columns") or []
        #: The sha256 of the table as Parquet, in the host's artifact store.
        self.artifact: str | None = (envelope.get("artifact") or {}).get("sha256")
        #: Why the table could not be stored.
        self.note: str | None = envelope.get("note")

    @property
    def df(self) -> Any:
        """The table as a data frame; lists of records are converted."""
        data = self.data
        if isinstance(data, dict):
            lists = [value for value in data.values() if isinstance(value, list)]
            data = lists[0] if len(lists) == 1 else data
        if isinstance(data, list) and all(isinstance(row, dict) for row in data):
            library = installed("pandas", "polars")
            if library is None:
                raise ParseError("the image has neither pandas nor polars; use `.data`")
            return library.DataFrame(data)
        if isinstance(data, (dict, list, str, int, float, type(None))):
            raise ParseError(f"the answer is {with_article(type(data).__name__)}, not a table; use `.data`")
        return data

    def __repr__(self) -> str:
        call = f"{self.provenance['connector']}.{self.provenance['function']}"
        rows = f", {many(self.row_count, 'row')}" if self.row_count is not None else ""
        return f"<fetched from {call}{rows}{', cached' if self.cached else ''}>"
