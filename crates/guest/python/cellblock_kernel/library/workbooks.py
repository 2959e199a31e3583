"""Workbooks: .xlsx, .xls, .ods, and files that only have the name of one."""

from __future__ import annotations

import io
import re
from typing import Any

from cellblock_kernel.library.source import BadInput, Source, contains, installed, summary

_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# Old workbooks outside of a compound file.
_BIFF = (b"\x09\x00\x04\x00", b"\x09\x02\x06\x00", b"\x09\x04\x06\x00", b"\x09\x08\x10\x00")
_REPAIR = "save the workbook again as .xlsx, or export the sheet as CSV"
_SHOWN = 20
# The end of a cell with a formula and no value.
_EMPTY_FORMULA = re.compile(rb"(?:</f>|<f[^<>]*/>)\s*(?:<v\s*/>|<v>\s*</v>)?\s*</c>")
# Packages of pandas' engines.
PACKAGES = {"openpyxl": "openpyxl", "odf": "odfpy", "xlrd": "xlrd", "pyxlsb": "pyxlsb"}


class NotReadable(ValueError):
    """A file that cannot be read as a workbook; the arguments are the cause and the repair."""

    def __str__(self) -> str:
        return "; ".join(map(str, self.args))


def engine(content: bytes) -> str | None:
    """Returns the name of pandas' engine for a workbook, None if it is not a workbook."""
    if content.startswith(b"PK"):
        return _zipped(content)
    if content.startswith(_BIFF):
        return "xlrd"
    if not content.startswith(_COMPOUND[:4]):
        return None
    if "EncryptedPackage".encode("utf-16-le") in content:
        raise NotReadable("the workbook is encrypted with a password", "save it without a password")
    if any(stream.encode("utf-16-le") + b"\0\0" in content for stream in ("Workbook", "Book")):
        return "xlrd"
    raise NotReadable("an Office file of the old kind (.doc, .ppt or damaged), not a workbook", "save it as .xlsx")


def _zipped(content: bytes) -> str | None:
    import zipfile

    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = set(archive.namelist())
            if "xl/workbook.bin" in names:
                return "pyxlsb"
            opened = archive.read("mimetype") if "mimetype" in names else b""
    except Exception as error:
        raise NotReadable(f"damaged or not xlsx at all: {summary(error)}", _REPAIR) from error
    if b"opendocument" not in opened:
        return "openpyxl"
    if b"spreadsheet" not in opened:
        raise NotReadable("an OpenDocument file, but not a spreadsheet", "save it as a spreadsheet")
    return "odf"


def reader(name: str) -> str:
    """Returns the engine that reads a form in this image: its own, or calamine, which reads all of them."""
    has_calamine = installed("python_calamine") is not None
    # pandas warns of its own engine for old workbooks, and nobody has chosen it.
    if installed(name) is not None and not (name == "xlrd" and has_calamine):
        return name
    if has_calamine:
        return "calamine"
    package = PACKAGES[name]
    raise NotReadable(f"reading it needs the package {package}, which the image lacks", f"name `{package}` in `requirements`")


def read(source: Source) -> Any:
    """Reads a workbook's first sheet, and notes the others."""
    library = installed("pandas", "polars")
    if library is None:
        source.fail("the image has neither pandas nor polars", "bind it as bytes")
    content = source.content()
    if not content:
        source.fail("the file is empty", _REPAIR)
    try:
        name = engine(content)
        if name is None:
            return _misnamed(library, source, content)
        if library.__name__ == "polars":
            return library.read_excel(io.BytesIO(content))
        return _sheet(library, source, content, name)
    except NotReadable as error:
        source.fail(str(error.args[0]), str(error.args[1]), error)
    except ImportError as error:
        source.fail(f"the image lacks a package: {summary(error)}", "name it in `requirements`, or bind it as bytes", error)
    except Exception as error:
        if type(error).__module__.startswith("cellblock_kernel"):
            raise
        if "encrypted" in str(error).lower():
            source.fail("the workbook is encrypted with a password", "save it without a password", error)
        source.fail(f"damaged or not {source.kind} at all: {summary(error)}", _REPAIR, error)


def _sheet(pandas: Any, source: Source, content: bytes, name: str) -> Any:
    with pandas.ExcelFile(io.BytesIO(content), engine=reader(name)) as book:
        sheets = [str(sheet) for sheet in book.sheet_names]
        if name != "openpyxl":
            kinds = {"odf": "OpenDocument spreadsheet", "xlrd": "old workbook (.xls)", "pyxlsb": "binary workbook (.xlsb)"}
            source.notes.append(f"format: {kinds[name]}")
        if len(sheets) > 1:
            others = ", ".join(f"`{sheet}`" for sheet in sheets[1:_SHOWN]) + (", …" if len(sheets) > _SHOWN else "")
            source.notes.append(
                f"sheet: `{sheets[0]}`, the first of {len(sheets)}; not read: {others} "
                f'(pd.read_excel("/tmp/data/{source.name}.xlsx", sheet_name=None) reads all)'
            )
        # Only empty cells are missing: a text NA is a text, such as the code of Namibia.
        frame = pandas.read_excel(book, dtype=object, keep_default_na=False, na_values=[""])
    if name == "openpyxl" and frame.isna().any(axis=None) and _has_empty_formulas(content):
        source.notes.append(
            "formulas without a stored result are missing values; a spreadsheet program stores them when it saves the workbook"
        )
    texts = typed(pandas, frame)
    if texts:
        source.notes.append(text_note(texts))
    return frame


def _has_empty_formulas(content: bytes) -> bool:
    """Returns whether a sheet has a formula whose result was never computed, as libraries write them."""
    import zipfile

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in archive.namelist():
            if not name.startswith("xl/worksheets/"):
                continue
            with archive.open(name) as sheet:
                if contains(sheet, [_EMPTY_FORMULA], 64):
                    return True
    return False


def typed(pandas: Any, frame: Any) -> list[str]:
    """Gives the columns of a sheet that was read as objects the types of their cells, and returns those whose texts look
    like numbers. pandas itself makes numbers of them: 7 of the text 007."""
    texts = []
    for at in range(frame.shape[1]):
        column = frame.iloc[:, at]
        frame.isetitem(at, column.infer_objects())
        cells = column[column.map(lambda value: isinstance(value, str))]
        if len(cells) and pandas.to_numeric(cells, errors="coerce").notna().all():
            texts.append(str(frame.columns[at]))
    return texts


def text_note(columns: list[str]) -> str:
    """Returns the note for columns whose texts look like numbers."""
    shown = ", ".join(f"`{name}`" for name in columns[:_SHOWN]) + (", …" if len(columns) > _SHOWN else "")
    return f"{shown}: cells of the type text look like numbers and stay text; pd.to_numeric converts them"


def _misnamed(library: Any, source: Source, content: bytes) -> Any:
    """Reads a web page or separated text that has the name of a workbook, as web applications write them."""
    start = content[:4096].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith(b"<"):
        if b"urn:schemas-microsoft-com:office:spreadsheet" in start:
            raise NotReadable("an XML spreadsheet of 2003, not a workbook", _REPAIR)
        if not any(tag in content[: 1 << 20].lower() for tag in (b"<html", b"<table")):
            raise NotReadable("XML, not a workbook", _REPAIR)
        return _page(library, source, content)
    from cellblock_kernel.library import separated

    try:
        source.settle()
    except BadInput as error:
        raise NotReadable(f"damaged or not {source.kind} at all: it does not begin like a workbook", _REPAIR) from error
    layout = separated.find(source, "\t")
    rows = source.head(4096).decode(source.encoding, "ignore").splitlines()
    if len(rows) < 2 or layout.separator not in rows[layout.skipped]:
        raise NotReadable(f"damaged or not {source.kind} at all: it is text", _REPAIR)
    source.notes.clear()
    source.notes.append("format: text with separated fields, not a workbook")
    return separated.read(source, "\t")


def _page(library: Any, source: Source, content: bytes) -> Any:
    if library.__name__ != "pandas" or installed("lxml") is None:
        raise NotReadable("an HTML page, not a workbook", "name `lxml` in `requirements` to read its tables, or save it as .xlsx")
    # By default, pandas drops every comma, so that 1,5 would become 15.
    tables = library.read_html(io.BytesIO(content), thousands=None, flavor="lxml")
    place, largest = max(enumerate(tables), key=lambda table: table[1].size)
    from cellblock_kernel.library import identifiers

    if identifiers.IN_PAGE.search(content):
        columns = dict.fromkeys(range(largest.shape[1]), str)
        texts = library.read_html(io.BytesIO(content), thousands=None, flavor="lxml", converters=columns)[place]
        _keep_identifiers(source, largest, texts)
    chosen = f", the largest of {len(tables)}" if len(tables) > 1 else ""
    source.notes.append(f"format: table of an HTML page{chosen}, not a workbook")
    return largest


def _keep_identifiers(source: Source, frame: Any, texts: Any) -> None:
    from cellblock_kernel.library import identifiers

    for at in range(frame.shape[1]):
        column = texts.iloc[:, at]
        found = identifiers.with_zeros(column.astype(str).str.strip())
        if found is not None and frame.dtypes.iloc[at].kind in "iuf":
            frame.isetitem(at, column.where(column != ""))
            source.notes.append(identifiers.note(frame.columns[at], found))
