"""The form of a frame: what its Arrow table does not say, as JSON beside the table."""

from __future__ import annotations

import base64
import importlib
from typing import Any

# Of an array inside the form, such as the categories of a column.
_EMBEDDED_BYTES = 256 << 10


class NotPublishable(ValueError):
    """A frame has a part that would not be the same after it is loaded."""

    # Tracebacks show this name.
    __module__ = "cellblock"


def arrow() -> Any:
    """Returns pyarrow."""
    return importlib.import_module("pyarrow")


def packed_schema(schema: Any) -> str:
    """Returns an Arrow schema as text."""
    return base64.b64encode(schema.serialize().to_pybytes()).decode("ascii")


def unpacked_schema(text: str) -> Any:
    """Returns the Arrow schema of a text."""
    pa = arrow()
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


def embedded(array: Any, what: str) -> str:
    """Returns a small Arrow array as text."""
    pa = arrow()
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([array], names=["values"])
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data = sink.getvalue()
    if data.size > _EMBEDDED_BYTES:
        raise NotPublishable(f"{what} have {data.size} bytes, the limit is {_EMBEDDED_BYTES}; convert them to a plain column")
    return base64.b64encode(data.to_pybytes()).decode("ascii")


def unembedded(text: str) -> Any:
    """Returns the Arrow array of a text."""
    pa = arrow()
    reader = pa.ipc.open_stream(base64.b64decode(text))
    return combined(reader.read_all().column(0))


def combined(column: Any) -> Any:
    """Returns a column as one array."""
    if not hasattr(column, "chunks"):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return arrow().concat_arrays(column.chunks) if column.num_chunks else arrow().array([], column.type)
