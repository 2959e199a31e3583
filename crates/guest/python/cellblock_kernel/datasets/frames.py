"""Data frames as Arrow tables with a form beside them, and back, by library."""

from __future__ import annotations

import json
import sys
from typing import Any

from cellblock_kernel.datasets import other_frames, pandas_frames
from cellblock_kernel.datasets.form import NotPublishable, arrow, packed_schema, unpacked_schema
from cellblock_kernel.library.reading import parquet_table
from cellblock_kernel.library.source import installed

_dumps = json.dumps


class Encoded:
    """A data frame as a table, and what is said of it."""

    def __init__(self, library: str, table: Any, form: dict[str, Any], columns: list[dict[str, str]], index: list[str]) -> None:
        self.table = table
        form["schema_of_table"] = packed_schema(table.schema.remove_metadata())
        self.about: dict[str, Any] = {
            "library": library,
            "rows": table.num_rows,
            "columns": columns,
            "index": index,
            "frame": _dumps({"library": library, **form}),
        }


def encode(frame: Any) -> Encoded:
    """Encodes a data frame of pandas, polars or pyarrow; another value is a `TypeError`."""
    kind = type(frame)
    library, name = kind.__module__.split(".")[0], kind.__name__
    if (library, name) not in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table")):
        hint = "use .to_frame()" if name == "Series" else "convert it to a pandas or polars DataFrame"
        raise TypeError(f"publish_dataset expects a data frame, not {name}; {hint}")
    if installed("pyarrow") is None:
        raise NotPublishable("the image has no pyarrow, which datasets need; use the default image, or add it to the image")
    module = sys.modules[library]
    if frame.shape[1] == 0:
        raise NotPublishable("the frame has no columns; publish one with at least one column")
    if library == "pandas":
        table, form = pandas_frames.encode(frame, module)
        columns, index = pandas_frames.columns(frame, table.column_names)
    elif library == "polars":
        table, form = other_frames.encode_polars(frame, module)
        columns, index = [{"name": it, "dtype": str(dtype)} for it, dtype in frame.schema.items()], []
    else:
        table, form = other_frames.encode_arrow(frame)
        columns, index = [{"name": field.name, "dtype": str(field.type)} for field in frame.schema], []
    return Encoded(library, table, form, columns, index)


def decode(parquet: bytes) -> Any:
    """Returns the data frame of a dataset's file."""
    table = parquet_table(arrow().BufferReader(parquet))
    form = json.loads((table.schema.metadata or {})[b"cellblock.frame"])
    # Parquet lacks some types, such as durations and times in seconds.
    table = table.cast(unpacked_schema(form["schema_of_table"]))
    library = form["library"]
    module = installed(library)
    if module is None:
        raise ImportError(f"the dataset is a frame of {library}, which the image lacks; use an image with {library}")
    if library == "pandas":
        return pandas_frames.decode(table, form, module)
    return other_frames.decode_polars(table, form, module) if library == "polars" else other_frames.decode_arrow(table, form)
