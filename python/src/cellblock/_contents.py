"""Variables, inputs, files, datasets, aliases and tools of a session."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import _operations as api
from . import types
from ._errors import CellblockError
from ._handle import Handle, given, inside


class Contents(Handle):
    """Operations on a session's data."""

    def variables(self) -> list[dict[str, Any]]:
        """Describes the session's variables: each has a `name`, a `type` and a `summary`."""
        return [dict(it) for it in self._call(api.LIST_VARIABLES)]

    def variable(
        self,
        name: str,
        *,
        rows: int | None = None,
        chars: int | None = None,
        page: int | None = None,
        view: str | None = None,
    ) -> types.SessionVariable:
        """Returns a variable's value as an output of the API.

        `rows` and `page` select a page of a table, `chars` and `page` one of a text; `page=-1` is the last one. `view` (`full` or
        `minimal`) adds the value as a model reads it. Counts as a cell.
        """
        return self._call(api.GET_VARIABLE, query={"rows": rows, "chars": chars, "page": page, "view": view}, name=name)

    def origin(self, name: str) -> types.VariableOrigin:
        """Returns the producer, the cell and the fetched data of a variable that a cell with a `producer` has bound."""
        return self._call(api.GET_VARIABLE_ORIGIN, name=name)

    def put(self, name: str, value: Any, *, format: str | None = None) -> list[str]:
        """Binds a value to a variable: a data frame of pandas, Polars or pyarrow, bytes, or anything that JSON can hold.

        `format` says how bytes are read: `csv`, `parquet`, `json`, `ndjson`, `arrow`, `xlsx` become a data frame or a value; without one,
        the variable holds the bytes. Returns what was detected of a file that is not plain, such as its separator, encoding or sheet.
        """
        frame = parquet(value)
        if frame is not None:
            value, format = frame, "parquet"
        if isinstance(value, bytes | bytearray | memoryview):
            bound = self._call(api.BIND_INPUT, content=bytes(value), query={"format": format or "bytes"}, name=name)
            return list(bound.get("detected", []))
        if format is not None:
            raise CellblockError(f"`format` is for bytes, and `{name}` is {type(value).__name__}")
        if isinstance(value, float) and not math.isfinite(value):
            raise CellblockError(f"`{name}` is {value}, which JSON cannot hold")
        self._call(api.BIND_INPUT, {"value": value}, name=name)
        return []

    def put_artifact(self, name: str, sha256: str, *, format: str) -> types.InputBound:
        """Binds one of your artifacts to a variable. `format` is one of `put`, such as `parquet` for a displayed table."""
        return self._call(api.BIND_INPUT, {"artifact": sha256, "format": format}, name=name)

    def write(self, path: str, content: bytes | str | Path) -> None:
        """Writes a file into the sandbox; relative paths are below `/workspace`.

        `content` is bytes, text, or the path of a file to copy.
        """
        self._call(api.WRITE_FILE, content=content_of(content), path=inside(path))

    def read(self, path: str) -> bytes:
        """Reads a file of the sandbox. Relative paths are below `/workspace`."""
        return self._call(api.READ_FILE, path=inside(path))

    def remove(self, path: str) -> None:
        """Deletes a file of the sandbox. Relative paths are below `/workspace`."""
        self._call(api.DELETE_FILE, path=inside(path))

    def files(self) -> list[dict[str, Any]]:
        """Lists the files below `/workspace` and `/tmp/output`: each has a `path`, its size in `bytes`, and `modified_unix_ms`."""
        return [dict(it) for it in self._call(api.LIST_FILES)]

    def mount(self, name: str, content: bytes | str | Path, *, as_csv: bool = False) -> types.Mounted:
        """Adds a dataset to a session with the toolset `workbench`: a read-only file in `/tmp/data`.

        The extension of `name` says what it is, such as `sales.parquet`; `as_csv` converts Parquet or Arrow.
        """
        return self._call(api.ADD_DATASET, content=content_of(content), query={"name": name, "as_csv": as_csv})

    def datasets(self) -> list[types.Mounted]:
        """Lists the datasets that were added with `mount`."""
        return self._call(api.LIST_DATASETS)

    def tools(self) -> list[types.Tool]:
        """Lists the session's tools with the JSON schemas of their parameters, as a model gets them."""
        return self._call(api.LIST_TOOLS)

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Calls a tool of the session and returns its answer."""
        return self._call(api.CALL_TOOL, dict(arguments), name=name)

    def record(self, value: Any, *, tool: str | None = None, alias: str | None = None, format: str | None = None) -> types.Alias:
        """Records a tool's result in a session with the toolset `derivation`, whose code derives from it under its alias.

        Give `tool`, the name of the tool that returned it, or `alias`. `value` is JSON, a data frame, or bytes of a table in `format`
        (`parquet` or `arrow`).
        """
        frame = parquet(value)
        if frame is not None:
            value, format = frame, "parquet"
        request = given(tool=tool, alias=alias, format=format)
        if isinstance(value, bytes):
            request["data"] = base64.b64encode(value).decode()
        else:
            request["value"] = value
        return self._call(api.RECORD_ALIAS, request)

    def aliases(self) -> list[types.Alias]:
        """Lists the recorded results of tools."""
        return self._call(api.LIST_ALIASES)


def content_of(content: bytes | str | Path) -> bytes:
    """Returns bytes, text or a file as bytes."""
    if isinstance(content, Path):
        return content.read_bytes()
    return content.encode() if isinstance(content, str) else content


def parquet(value: Any) -> bytes | None:
    """Returns a data frame's rows as Parquet; `None` if the value is not a data frame."""
    library = type(value).__module__.partition(".")[0]
    to = io.BytesIO()
    if library == "pandas" and hasattr(value, "to_frame"):
        value = value.to_frame()
    if library == "pandas" and hasattr(value, "to_parquet"):
        value.to_parquet(to)
    elif library == "polars" and hasattr(value, "write_parquet"):
        value.write_parquet(to)
    elif library == "pyarrow" and hasattr(value, "to_batches"):
        import pyarrow.parquet

        pyarrow.parquet.write_table(value, to)
    else:
        return None
    return to.getvalue()
