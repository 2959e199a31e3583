"""What a cell returned."""

from __future__ import annotations

import ast
import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from . import _display
from ._errors import CellblockError, CellError
from ._http import Server
from ._operations import READ_ARTIFACT, READ_ROWS

_Kind = TypeVar("_Kind", bound="Output")


@dataclass(frozen=True)
class Output:
    """A value that a cell displayed.

    `type` is its kind (`primitive`, `dataframe`, `figure`, `image`, `rich`, `chart`, `result`, `exception`) and `data` the JSON object of
    the API, with everything that has no attribute here.
    """

    type: str
    name: str | None
    data: dict[str, Any] = field(repr=False)
    _server: Server = field(repr=False)

    @property
    def value(self) -> Any:
        """The value in Python: a number, a string, or a container of them; of anything else, its text."""
        value = self.data.get("value", self.data.get("text"))
        if self.type != "primitive" or not isinstance(value, str) or self.data["python_type"] == "str":
            return value
        if self.data["python_type"] == "float":
            return float(value)
        try:
            # What has no JSON form is sent as its repr.
            return ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return value

    def _artifact(self, reference: dict[str, Any] | None, what: str) -> bytes:
        if reference is None:
            note = self.data.get("note")
            raise CellblockError(f"the {self.type} has no {what}" + (f": {note}" if note else ""))
        return self._server.call(READ_ARTIFACT, sha256=reference["sha256"])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Shows it in a notebook."""
        return _display.bundle([self.data], lambda it: self._artifact(it, "picture"))


@dataclass(frozen=True)
class Table(Output):
    """A data frame of pandas, Polars or pyarrow. Accessing its rows fetches them."""

    @property
    def rows(self) -> int:
        """The number of its rows."""
        return int(self.data["rows"])

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        return [column["name"] for column in self.data["columns"]]

    @property
    def head(self) -> list[list[Any]]:
        """Its first rows, which came with the result."""
        return list(self.data["head"])

    def parquet(self) -> bytes:
        """Its rows as a Parquet file."""
        return self._artifact(self.data.get("table"), "stored rows")

    def page(self, offset: int = 0, limit: int = 1000, *, sort: int | None = None, descending: bool = False) -> list[list[Any]]:
        """Its rows from `offset` on, at most `limit` (10,000 is the maximum), without fetching all of them. Long cells are cut.

        `sort` is the index of a column, from 0, by which all rows are sorted first. Counts as a cell.
        """
        if self.data.get("table") is None:
            self._artifact(None, "stored rows")
        query = {"offset": offset, "limit": limit, "sort": sort, "descending": descending or None}
        rows = json.loads(self._server.call(READ_ROWS, query=query, sha256=self.data["table"]["sha256"]))["rows"]
        return list(rows)

    def to_pandas(self) -> Any:
        """Its rows as a pandas data frame, or a series if it was one. Needs pandas and pyarrow."""
        import pandas

        frame = pandas.read_parquet(io.BytesIO(self.parquet()))
        index = self.data["index"]
        if index:
            # One without a name is stored as `index`.
            frame = frame.set_index(index).rename_axis([None if name == "index" else name for name in index])
        return frame.iloc[:, 0] if self.data["series"] and frame.shape[1] == 1 else frame

    def to_polars(self) -> Any:
        """Its rows as a Polars data frame. Needs polars."""
        import polars

        return polars.read_parquet(io.BytesIO(self.parquet()))

    def to_arrow(self) -> Any:
        """Its rows as an Arrow table. Needs pyarrow."""
        import pyarrow.parquet

        return pyarrow.parquet.read_table(io.BytesIO(self.parquet()))

    @property
    def value(self) -> Any:
        """Its rows as a data frame of the library that it came from, or else of one that is installed here."""
        ways = {"pandas": self.to_pandas, "polars": self.to_polars, "pyarrow": self.to_arrow}
        first = self.data.get("library")
        missing = []
        for library in sorted(ways, key=lambda it: it != first):
            try:
                return ways[library]()
            except ImportError as error:
                missing.append(str(error))
        raise CellblockError(
            f"a data frame needs a library to be read with: {'; '.join(missing)}; "
            "install `cellblock[pandas]` or `cellblock[polars]`, or use `parquet()`"
        )


@dataclass(frozen=True)
class Figure(Output):
    """A figure of a plotting library, or a picture."""

    @property
    def picture(self) -> bytes:
        """Its bytes, in the format that `media_type` names."""
        return self._artifact(self.data.get("image"), "picture")

    @property
    def media_type(self) -> str:
        """The format of its picture, such as `image/png`."""
        return str((self.data.get("image") or {}).get("media_type", ""))

    @property
    def spec(self) -> Any:
        """Its specification, such as Vega-Lite's, if its library has one. A file's specification is fetched by its SHA-256."""
        return self.data.get("spec")

    @property
    def value(self) -> Any:
        """Its picture."""
        return self.picture


@dataclass(frozen=True)
class Chart(Figure):
    """A chart as a specification with its rows."""

    def export(self, format: str) -> bytes:
        """The chart as `png`, `svg`, `html` (a page that needs no network) or `vega-lite`. Counts as a cell."""
        document = self.data.get("document")
        if document is None:
            self._artifact(None, "stored specification")
        return self._server.call(READ_ARTIFACT, query={"format": format}, sha256=(document or {})["sha256"])


@dataclass(frozen=True)
class File:
    """A file that a cell wrote to `/tmp/output`; `size` is in bytes."""

    name: str
    path: str
    size: int
    sha256: str
    _server: Server = field(repr=False)

    def read(self) -> bytes:
        """Its content."""
        return self._server.call(READ_ARTIFACT, sha256=self.sha256)

    def save(self, to: str | Path = ".") -> Path:
        """Writes it to a file, or to a folder under its own name, and returns the path."""
        target = Path(to)
        if target.is_dir():
            # The sandbox chose the name: it must not choose the folder.
            target = target / Path(self.name).name
        target.write_bytes(self.read())
        return target


_KINDS: dict[str, type[Output]] = {"dataframe": Table, "figure": Figure, "image": Figure, "chart": Chart}


def output(data: dict[str, Any], server: Server) -> Output:
    """Returns an output of the class for its type."""
    return _KINDS.get(data["type"], Output)(data["type"], data.get("name"), data, server)


@dataclass(frozen=True)
class Result:
    """What a cell did. `data` is the JSON object of the API.

    `outcome` is `completed`, `raised`, `interrupted` (by a timeout too), `kernel_lost`, `limit_exceeded` or `rejected`.
    """

    outcome: str
    outputs: list[Output]
    files: list[File]
    stdout: str
    stderr: str
    data: dict[str, Any] = field(repr=False)
    _server: Server | None = field(default=None, repr=False)

    @classmethod
    def read(cls, data: dict[str, Any], server: Server) -> Result:
        """Reads the API's object."""
        files = [File(it["name"], it["path"], it["bytes"], it["sha256"], server) for it in data["files"]]
        outputs = [output(it, server) for it in data["outputs"]]
        return cls(data["outcome"], outputs, files, data["stdout"], data["stderr"], data, server)

    @property
    def ok(self) -> bool:
        """Whether the code ran to its end."""
        return self.outcome == "completed"

    @property
    def error(self) -> dict[str, Any] | None:
        """The exception's type, message and line, if the code failed."""
        error = self.data.get("error")
        return dict(error) if error else None

    @property
    def seconds(self) -> float:
        """How long the code ran."""
        return float(self.data["duration_ms"]) / 1000

    def check(self) -> Result:
        """Returns itself, or raises `CellError` if the code failed."""
        if not self.ok:
            raise CellError(self)
        return self

    @property
    def value(self) -> Any:
        """The value of the cell's last displayed output, such as its last expression; `None` if there is none.

        Raises `CellError` if the code failed.
        """
        self.check()
        return self.outputs[-1].value if self.outputs else None

    @property
    def table(self) -> Table:
        """The last table that the cell displayed."""
        return self._last(Table, "table")

    @property
    def figure(self) -> Figure:
        """The last figure, chart or picture that the cell displayed."""
        return self._last(Figure, "figure")

    @property
    def png(self) -> bytes:
        """The last figure as a PNG."""
        figure = self.figure
        if figure.media_type != "image/png":
            raise CellblockError(f"the figure is {figure.media_type or 'without a picture'}, not image/png")
        return figure.picture

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Shows the text, the outputs and the error in a notebook."""
        server = self._server
        return _display.bundle(
            self.data["outputs"],
            lambda reference: server.call(READ_ARTIFACT, sha256=reference["sha256"]) if server else b"",
            before=[self.stdout, self.stderr],
            after=None if self.ok or any(it.type == "exception" for it in self.outputs) else self.describe_error(),
        )

    def _last(self, kind: type[_Kind], what: str) -> _Kind:
        self.check()
        for it in reversed(self.outputs):
            if isinstance(it, kind):
                return it
        shown = ", ".join(it.type for it in self.outputs) or "nothing"
        raise CellblockError(f"the cell displayed no {what}, but {shown}")

    def describe_error(self) -> str:
        """What failed, in one text."""
        error = self.error or {}
        what = ": ".join(filter(None, [self.outcome, error.get("type"), error.get("message")]))
        for it in reversed(self.outputs):
            if it.type == "exception":
                what = str(it.data["traceback"]).rstrip()
                break
        note = self.data.get("note")
        return f"{what}\n{note}" if note else what
