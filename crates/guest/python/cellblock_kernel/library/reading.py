"""Reads an input in its format, with pandas if available, else polars, else the standard library.

A problem is reported as a `BadInput` that names the input, the format, what is wrong and how to repair it.
"""

from __future__ import annotations

import base64
import importlib
import json
from collections.abc import Callable
from typing import Any

from cellblock_kernel.library.source import BadInput as BadInput
from cellblock_kernel.library.source import Source, installed, rounding_note, rounds, summary, whole_numbers

# The annotation of our Parquet files with the types of a table, if Parquet lacks some of them.
_TYPES = b"cellblock.schema"


def read(name: str, kind: str, path: str | None, blob: bytes | None, notes: list[str] | None = None) -> Any:
    """Reads an input from a file or from bytes, and adds what was detected of it to `notes`."""
    reader = _READERS.get(kind)
    if reader is None:
        raise BadInput(f"input {name!r}: unknown format {kind!r}; expected one of {', '.join(_READERS)}")
    if path is None and blob is None:
        raise BadInput(f"input {name!r} ({kind}): neither a path nor bytes were given")
    source = Source(name, kind, path, blob)
    value = reader(source)
    if notes is not None:
        notes += source.notes
    return value


def _separated(source: Source, separator: str) -> Any:
    # Only here, because most sessions bind no such text.
    from cellblock_kernel.library import separated

    return separated.read(source, separator)


def _csv(source: Source) -> Any:
    return _separated(source, ",")


def _tsv(source: Source) -> Any:
    return _separated(source, "\t")


def _parse(source: Source, text: str, first_line: int = 1) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        source.fail(
            f"malformed at line {line}, column {error.colno}: {error.msg}",
            "repair the JSON there, or bind it as bytes and parse it in the code",
            error,
        )
    except RecursionError as error:
        source.fail("nested too deeply", "flatten the JSON, or bind it as bytes", error)


def _json(source: Source) -> Any:
    source.settle()
    text = source.text()
    try:
        return _tabular(source, _parse(source, text))
    except BadInput as error:
        cause = error.__cause__
        if not isinstance(cause, json.JSONDecodeError) or cause.msg != "Extra data":
            raise
        try:
            rows = [json.loads(line) for line in text.split("\n") if line.strip()]
        except ValueError:
            raise error from cause
        source.notes.append("format: one JSON document per line")
        return _tabular(source, rows)


def _ndjson(source: Source) -> Any:
    source.settle()
    lines = source.text().split("\n")
    try:
        values = [_parse(source, line, number) for number, line in enumerate(lines, 1) if line.strip()]
        if len(values) == 1 and isinstance(values[0], list):
            source.notes.append("format: one JSON document, not one per line")
            return _tabular(source, values[0])
        return _tabular(source, values)
    except BadInput as error:
        try:
            value = json.loads("\n".join(lines))
        except (ValueError, RecursionError):
            raise error from error.__cause__
        source.notes.append("format: one JSON document, not one per line")
        return _tabular(source, value)


def _tabular(source: Source, value: Any) -> Any:
    """Returns a frame if the JSON is a table in one of the usual shapes, else the value itself."""
    pandas = installed("pandas")
    library = pandas or installed("polars")
    if library is None or not value:
        return value
    if isinstance(value, list) and all(isinstance(row, dict) for row in value):
        frame = library.DataFrame(value)
        return _with_whole_numbers(source, pandas, frame, lambda at: [row.get(frame.columns[at]) for row in value])
    if isinstance(value, dict):
        if pandas is not None and {"columns", "data"} <= value.keys() <= {"columns", "data", "index"}:
            frame = pandas.DataFrame(value["data"], columns=value["columns"], index=value.get("index"))
            return _with_whole_numbers(source, pandas, frame, lambda at: [row[at] for row in value["data"]])
        columns = list(value.values())
        if all(isinstance(column, list) for column in columns) and len({len(column) for column in columns}) == 1:
            return _with_whole_numbers(source, pandas, library.DataFrame(value), lambda at: columns[at])
    return value


def _with_whole_numbers(source: Source, pandas: Any, frame: Any, values_of: Callable[[int], list[Any]]) -> Any:
    """Restores whole numbers of columns with gaps where a float rounds them, and says where fractions prevent it."""
    if pandas is None:
        return frame
    for at in range(frame.shape[1]):
        if rounds(frame.iloc[:, at]):
            values = values_of(at)
            if all(value is None or type(value) is int for value in values):
                frame.isetitem(at, whole_numbers(pandas, values, frame.index))
                continue
            rounded = next((value for value in values if type(value) is int and int(float(value)) != value), None)
            if rounded is not None:
                source.notes.append(rounding_note(frame.columns[at], rounded))
    return frame


def _parquet(source: Source) -> Any:
    repair = "write the file again; it may have been cut off while it was copied"
    if installed("pandas") is not None and installed("pyarrow") is not None:
        return _binary(source, lambda file: _read_parquet(file, source.notes), repair)
    library = installed("pandas", "polars")
    if library is None:
        source.fail("the image has neither pandas nor polars", "bind it as bytes")
    return _binary(source, library.read_parquet, repair)


def parquet_table(file: Any) -> Any:
    """Reads a Parquet file as an Arrow table, without threads: pyarrow's would stay, and a kernel with threads cannot be
    copied for a rescue."""
    parquet = importlib.import_module("pyarrow.parquet")
    table = parquet.ParquetFile(file, pre_buffer=False).read(use_threads=False)
    metadata = table.schema.metadata or {}
    types = metadata.get(_TYPES)
    if types is None:
        return table
    # Times in seconds, which Parquet lacks.
    buffer = importlib.import_module("pyarrow").py_buffer(base64.b64decode(types))
    schema = importlib.import_module("pyarrow.ipc").read_schema(buffer)
    return table.cast(schema.with_metadata(metadata)) if schema.names == table.schema.names else table


def _frame(table: Any, keep_dates: bool, notes: list[str] | None) -> Any:
    # Only here, because most sessions bind no such table.
    from cellblock_kernel.library import arrow_frames

    return arrow_frames.pandas_frame(table, keep_dates, notes)


def _read_parquet(file: Any, notes: list[str]) -> Any:
    table = parquet_table(file)
    frame = _frame(table, b"pandas" in (table.schema.metadata or {}), notes)
    attributes = (table.schema.metadata or {}).get(b"PANDAS_ATTRS")
    if attributes is not None:
        frame.attrs = json.loads(attributes)
    return frame


def _xlsx(source: Source) -> Any:
    from cellblock_kernel.library import workbooks

    return workbooks.read(source)


def _arrow(source: Source) -> Any:
    pyarrow = installed("pyarrow")
    polars = installed("polars") if pyarrow is None else None
    if pyarrow is not None:
        repair = "write the file again as an Arrow IPC file or stream"
        return _binary(source, lambda file: read_arrow(file, notes=source.notes), repair)
    if polars is None:
        source.fail("the image has neither pyarrow nor polars", "bind it as bytes")
    stream = not source.content().startswith(b"ARROW1")
    return _binary(source, polars.read_ipc_stream if stream else polars.read_ipc, "write the file again")


def read_arrow(file: Any, keep_dates: bool | None = None, notes: list[str] | None = None) -> Any:
    """Reads an Arrow IPC file or stream, without threads: pyarrow's would stay, and a kernel with threads cannot be copied
    for a rescue. Dates are kept as such if pandas wrote them, unless the caller decides."""
    ipc = importlib.import_module("pyarrow.ipc")
    is_file = file.read(6) == b"ARROW1"
    file.seek(0)
    options = ipc.IpcReadOptions(use_threads=False)
    table = (ipc.open_file if is_file else ipc.open_stream)(file, options=options).read_all()
    if installed("pandas") is None:
        return table
    return _frame(table, b"pandas" in (table.schema.metadata or {}) if keep_dates is None else keep_dates, notes)


def _binary(source: Source, reader: Any, repair: str) -> Any:
    with source.open() as file:
        if not file.read(1):
            source.fail("the file is empty", repair)
        file.seek(0)
        try:
            return reader(file)
        except ImportError as error:
            source.fail(f"the image lacks a package: {summary(error)}", "name it in `requirements`, or bind it as bytes", error)
        except Exception as error:
            source.fail(f"damaged or not {source.kind} at all: {summary(error)}", repair, error)


def _bytes(source: Source) -> Any:
    return source.content()


def _value(source: Source) -> Any:
    return _parse(source, source.content().decode("utf-8", "replace"))


_READERS = {
    "csv": _csv,
    "tsv": _tsv,
    "parquet": _parquet,
    "json": _json,
    "ndjson": _ndjson,
    "arrow": _arrow,
    "xlsx": _xlsx,
    "bytes": _bytes,
    "value": _value,
}
