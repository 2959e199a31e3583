"""Reads an input in its format, with pandas if available, else polars, else the standard library.

A problem is reported as a `BadInput` that names the input, the format, what is wrong and how to repair it.
"""

from __future__ import annotations

import codecs
import csv
import importlib
import io
import json
from typing import Any, NoReturn

_CHUNK = 1 << 20


class BadInput(ValueError):
    """An input's bytes do not match its format."""

    # Tracebacks show this name.
    __module__ = "cellblock_kernel.reading"


def read(name: str, kind: str, path: str | None, blob: bytes | None) -> Any:
    """Reads an input from a file or from bytes."""
    reader = _READERS.get(kind)
    if reader is None:
        raise BadInput(f"input {name!r}: unknown format {kind!r}; expected one of {', '.join(_READERS)}")
    if path is None and blob is None:
        raise BadInput(f"input {name!r} ({kind}): neither a path nor bytes were given")
    return reader(_Input(name, kind, path, blob))


class _Input:
    """An input while it is read."""

    def __init__(self, name: str, kind: str, path: str | None, blob: bytes | None) -> None:
        self.name = name
        self.kind = kind
        self._path = path
        self._blob = blob

    def open(self) -> Any:
        """Opens its bytes."""
        if self._blob is not None:
            return io.BytesIO(self._blob)
        try:
            return open(str(self._path), "rb")
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise BadInput(f"input {self.name!r} ({self.kind}): can not read {self._path}: {reason}") from error

    def bytes(self) -> bytes:
        """Reads all of it."""
        if self._blob is not None:
            return self._blob
        with self.open() as file:
            return bytes(file.read())

    def fail(self, cause: str, repair: str, error: BaseException | None = None) -> NoReturn:
        """Raises an error that says what is wrong and how to repair it."""
        raise BadInput(f"input {self.name!r} ({self.kind}): {cause}; {repair}") from error

    def check_text(self) -> None:
        """Fails if it is empty, or at its first byte that is not valid UTF-8."""
        decoder = codecs.getincrementaldecoder("utf-8")()
        seen = 0
        pending = 0
        with self.open() as file:
            while True:
                chunk = file.read(_CHUNK)
                try:
                    decoder.decode(chunk, final=not chunk)
                except UnicodeDecodeError as error:
                    offset = seen - pending + error.start
                    byte = error.object[error.start]
                    self.fail(
                        f"not UTF-8: byte 0x{byte:02x} at offset {offset}",
                        "re-encode the file as UTF-8 (for example `iconv -f WINDOWS-1252 -t UTF-8`), "
                        "or bind it as bytes and decode it in the code",
                        error,
                    )
                seen += len(chunk)
                pending = len(decoder.getstate()[0])
                if not chunk:
                    break
        if not seen:
            self.fail("the file is empty", "give a file with at least a header line")


def installed(*names: str) -> Any:
    """Returns the first of these modules that the image has, or None."""
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


def _summary(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


def _separated(source: _Input, separator: str) -> Any:
    source.check_text()
    library = installed("pandas", "polars")
    repair = "check the quoting and the number of fields of that line, or bind it as bytes and parse it in the code"
    if library is None:
        text = io.StringIO(source.bytes().decode("utf-8-sig"), newline="")
        return list(csv.DictReader(text, delimiter=separator))
    try:
        with source.open() as file:
            if library.__name__ == "polars":
                return library.read_csv(file, separator=separator)
            return library.read_csv(file, sep=separator, encoding="utf-8-sig")
    except Exception as error:
        if type(error).__name__ in ("EmptyDataError", "NoDataError"):
            source.fail("the file has no columns", "give a file with at least a header line", error)
        source.fail(f"malformed: {_summary(error)}", repair, error)


def _csv(source: _Input) -> Any:
    return _separated(source, ",")


def _tsv(source: _Input) -> Any:
    return _separated(source, "\t")


def _parse(source: _Input, text: str, first_line: int = 1) -> Any:
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


def _json(source: _Input) -> Any:
    source.check_text()
    return _tabular(_parse(source, source.bytes().decode("utf-8-sig")))


def _ndjson(source: _Input) -> Any:
    source.check_text()
    lines = source.bytes().decode("utf-8-sig").split("\n")
    return _tabular([_parse(source, line, number) for number, line in enumerate(lines, 1) if line.strip()])


def _tabular(value: Any) -> Any:
    """Returns a frame if the JSON is a table in one of the usual shapes, else the value itself."""
    pandas = installed("pandas")
    library = pandas or installed("polars")
    if library is None or not value:
        return value
    if isinstance(value, list) and all(isinstance(row, dict) for row in value):
        return library.DataFrame(value)
    if isinstance(value, dict):
        if pandas is not None and {"columns", "data"} <= value.keys() <= {"columns", "data", "index"}:
            return pandas.DataFrame(value["data"], columns=value["columns"], index=value.get("index"))
        columns = list(value.values())
        if all(isinstance(column, list) for column in columns) and len({len(column) for column in columns}) == 1:
            return library.DataFrame(value)
    return value


def _parquet(source: _Input) -> Any:
    repair = "write the file again; it may have been cut off while it was copied"
    if installed("pandas") is not None and installed("pyarrow") is not None:
        return _binary(source, _read_parquet, repair)
    library = installed("pandas", "polars")
    if library is None:
        source.fail("the image has neither pandas nor polars", "bind it as bytes")
    return _binary(source, library.read_parquet, repair)


def parquet_table(file: Any) -> Any:
    """Reads a Parquet file as an Arrow table, without threads: pyarrow's would stay, and a kernel with threads cannot be
    copied for a rescue."""
    parquet = importlib.import_module("pyarrow.parquet")
    return parquet.ParquetFile(file, pre_buffer=False).read(use_threads=False)


def _read_parquet(file: Any) -> Any:
    table = parquet_table(file)
    frame = table.to_pandas(use_threads=False)
    attributes = (table.schema.metadata or {}).get(b"PANDAS_ATTRS")
    if attributes is not None:
        frame.attrs = json.loads(attributes)
    return frame


def _xlsx(source: _Input) -> Any:
    library = installed("pandas", "polars")
    if library is None:
        source.fail("the image has neither pandas nor polars", "bind it as bytes")
    return _binary(source, library.read_excel, "save the workbook again as .xlsx, or export the sheet as CSV")


def _arrow(source: _Input) -> Any:
    pyarrow = installed("pyarrow")
    polars = installed("polars") if pyarrow is None else None
    if pyarrow is not None:
        return _binary(source, read_arrow, "write the file again as an Arrow IPC file or stream")
    if polars is None:
        source.fail("the image has neither pyarrow nor polars", "bind it as bytes")
    stream = not source.bytes().startswith(b"ARROW1")
    return _binary(source, polars.read_ipc_stream if stream else polars.read_ipc, "write the file again")


def read_arrow(file: Any) -> Any:
    """Reads an Arrow IPC file or stream, without threads: pyarrow's would stay, and a kernel with threads cannot be copied
    for a rescue."""
    ipc = importlib.import_module("pyarrow.ipc")
    is_file = file.read(6) == b"ARROW1"
    file.seek(0)
    options = ipc.IpcReadOptions(use_threads=False)
    table = (ipc.open_file if is_file else ipc.open_stream)(file, options=options).read_all()
    return table.to_pandas(use_threads=False) if installed("pandas") is not None else table


def _binary(source: _Input, reader: Any, repair: str) -> Any:
    with source.open() as file:
        if not file.read(1):
            source.fail("the file is empty", repair)
        file.seek(0)
        try:
            return reader(file)
        except ImportError as error:
            source.fail(f"the image lacks a package: {_summary(error)}", "name it in `requirements`, or bind it as bytes", error)
        except Exception as error:
            source.fail(f"damaged or not {source.kind} at all: {_summary(error)}", repair, error)


def _bytes(source: _Input) -> Any:
    return source.bytes()


def _value(source: _Input) -> Any:
    return _parse(source, source.bytes().decode("utf-8", "replace"))


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
