"""Readers of office documents for cells; their libraries are imported on first use.

A document is a path, its bytes (like an input bound as bytes), or a file that is open for reading.
"""

from __future__ import annotations

import importlib
import io
import sys
from os import PathLike
from typing import IO, Any, Union

from cellblock_kernel.outputs.limits import many

Document = Union[str, PathLike[str], bytes, bytearray, memoryview, IO[bytes]]

# Maximum depth of a form's fields.
_DEPTH = 32
# Maximum number of formulas without values that a note names.
_NAMED = 5
# Options that say where a table is, and nothing of its types.
_LAYOUT = frozenset({"header", "names", "usecols", "skiprows", "nrows", "skipfooter", "engine"})


def _library(module: str, package: str, reader: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{reader} needs the package {package}: name it in the cell's `requirements`") from error


def _source(document: Document) -> Any:
    """A document in the form that a library can read."""
    return io.BytesIO(document) if isinstance(document, (bytes, bytearray, memoryview)) else document


def read_pdf_text(path: Document, *, max_pages: int | None = None) -> str:
    """Returns the text of a PDF, its pages separated by blank lines. The values of a filled form follow the text of their page,
    as `label: value`."""
    if max_pages is not None and max_pages < 1:
        raise ValueError(f"read_pdf_text: max_pages must be at least 1, not {max_pages}; leave it out to read all pages")
    pypdf = _library("pypdf", "pypdf", "read_pdf_text")
    reader = pypdf.PdfReader(_source(path))
    if reader.is_encrypted and not _opens(reader):
        raise ValueError("read_pdf_text: the PDF is encrypted and needs a password; request a copy without one")
    pages = reader.pages if max_pages is None else reader.pages[:max_pages]
    texts = [(page.extract_text() or "").strip() for page in pages]
    for at, page in enumerate(pages):
        texts[at] = "\n".join(part for part in [texts[at], *_entries(page)] if part)
    if not any(texts) and any(map(_has_picture, pages)):
        raise ValueError(
            f"read_pdf_text: no text on {many(len(texts), 'page')}, so the PDF is probably a scan: its pages are pictures, "
            "which need to be recognized (OCR) before they can be read"
        )
    empty = [at for at, text in enumerate(texts) if not text]
    if empty:
        scanned = " (pictures, perhaps scans that need OCR)" if any(_has_picture(pages[at]) for at in empty) else ""
        print(f"note: read_pdf_text: no text on {_listed([at + 1 for at in empty])}{scanned}", file=sys.stderr)
    return "\n\n".join(texts)


def _listed(numbers: list[int]) -> str:
    """Returns pages as text, such as `page 3` or `pages 2-5, 9`."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    shown = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
    return f"{'page' if len(numbers) == 1 else 'pages'} {shown}"


def _entries(page: Any) -> list[str]:
    """Returns the filled fields of a page's form, one line each."""
    lines: list[str] = []
    annotations = page.get("/Annots")
    for annotation in (annotations.get_object() if annotations is not None else None) or ():
        widget = annotation.get_object()
        if widget.get("/Subtype") != "/Widget":
            continue
        value, kind = _inherited(widget, "/V"), _inherited(widget, "/FT")
        text = ", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)
        if kind == "/Btn":
            # Each button of a group has the group's value; the pressed one is in that state.
            if text in ("", "/Off") or widget.get("/AS", value) != value:
                continue
            text = text.lstrip("/")
        if kind not in ("/Tx", "/Ch", "/Btn") or not text.strip():
            continue
        line = f"{_inherited(widget, '/TU') or _field_name(widget)}: {text.strip()}"
        # A field that is shown twice has one value.
        if line not in lines:
            lines.append(line)
    return lines


def _inherited(widget: Any, key: str) -> Any:
    for _ in range(_DEPTH):
        if key in widget:
            return widget[key].get_object() if hasattr(widget[key], "get_object") else widget[key]
        if "/Parent" not in widget:
            return None
        widget = widget["/Parent"].get_object()
    return None


def _field_name(widget: Any) -> str:
    names: list[str] = []
    for _ in range(_DEPTH):
        if "/T" in widget:
            names.insert(0, str(widget["/T"]))
        if "/Parent" not in widget:
            break
        widget = widget["/Parent"].get_object()
    return ".".join(names)


def _has_picture(page: Any) -> bool:
    objects: Any = page
    for key in ("/Resources", "/XObject"):
        objects = objects.get(key)
        if objects is None:
            return False
        objects = objects.get_object()
    return any(it.get_object().get("/Subtype") == "/Image" for it in objects.values())


def _opens(reader: Any) -> bool:
    """Returns whether a PDF opens without a password, like many that forbid printing or copying."""
    try:
        return bool(reader.decrypt(""))
    except Exception:
        return False


def read_excel(path: Document, sheet_name: str | int | list[str | int] | None = 0, **options: Any) -> Any:
    """Returns a sheet as a data frame; `sheet_name=None` returns a dict of all sheets."""
    pandas = _library("pandas", "pandas", "read_excel")
    content = _content(path)
    from cellblock_kernel.library import workbooks

    try:
        engine = workbooks.engine(content)
    except workbooks.NotReadable as error:
        raise ValueError(f"read_excel: {error}") from None
    if engine is None:
        raise ValueError("read_excel: not a workbook; read a web page with pd.read_html, and text with pd.read_csv")
    package = workbooks.PACKAGES[engine]
    library = _library(engine, package, "read_excel")
    # With other options, the caller chooses the types.
    is_typed = not options.keys() - _LAYOUT
    if is_typed:
        options["dtype"] = object
    frame = pandas.read_excel(io.BytesIO(content), sheet_name=sheet_name, **{"engine": engine, **options})
    for sheet in (frame.values() if isinstance(frame, dict) else [frame]) if is_typed else []:
        texts = workbooks.typed(pandas, sheet)
        if texts:
            print(f"note: read_excel: {workbooks.text_note(texts)}", file=sys.stderr)
    empty = _without_values(library, content, sheet_name) if engine == "openpyxl" else []
    if empty:
        more = f" and {len(empty) - _NAMED} more" if len(empty) > _NAMED else ""
        print(
            f"note: read_excel: formulas without a stored value are read as empty: {', '.join(empty[:_NAMED])}{more}; "
            "open the workbook in a spreadsheet program and save it, or compute them in the code",
            file=sys.stderr,
        )
    return frame


def _content(document: Document) -> bytes:
    if isinstance(document, (bytes, bytearray, memoryview)):
        return bytes(document)
    if isinstance(document, (str, PathLike)):
        with open(document, "rb") as file:
            return file.read()
    return bytes(document.read())


def _without_values(openpyxl: Any, content: bytes, wanted: Any) -> list[str]:
    """Returns cells of the given sheets with a formula but no value, which programs other than spreadsheets do
    not write."""
    if not _has_formulas(content):
        return []
    formulas = openpyxl.load_workbook(io.BytesIO(content), read_only=True)
    values = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
    names = formulas.sheetnames
    asked = names if wanted is None else wanted if isinstance(wanted, list) else [wanted]
    found: list[str] = []
    for name in [names[it] if isinstance(it, int) else it for it in asked]:
        for row, computed in zip(formulas[name].iter_rows(), values[name].iter_rows()):
            for cell, value in zip(row, computed):
                if cell.data_type == "f" and value.value is None:
                    found.append(f"{name}!{cell.coordinate}")
    return found


def _has_formulas(content: bytes) -> bool:
    """Searches for the element of a formula: reading a workbook again is only useful if it has one."""
    # openpyxl has imported it.
    import zipfile

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        sheets = [name for name in archive.namelist() if name.startswith("xl/worksheets/") and name.endswith(".xml")]
        return any(mark in archive.read(name) for name in sheets for mark in (b"<f>", b"<f "))


def read_pptx_text(path: Document) -> list[dict[str, Any]]:
    """Returns the text of a presentation: for each slide its `index`, from 0, its `text`, and its `notes` if it
    has any."""
    pptx = _library("pptx", "python-pptx", "read_pptx_text")
    slides = []
    for index, slide in enumerate(pptx.Presentation(_source(path)).slides):
        entry = {"index": index, "text": "\n".join(line for line in _lines(slide.shapes) if line.strip())}
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            notes = slide.notes_slide.notes_text_frame.text
            if notes.strip():
                entry["notes"] = notes
        slides.append(entry)
    return slides


def _lines(shapes: Any) -> list[str]:
    lines: list[str] = []
    for shape in shapes:
        if hasattr(shape, "shapes"):
            lines += _lines(shape.shapes)
        elif shape.has_text_frame:
            lines.append(shape.text_frame.text)
        elif getattr(shape, "has_table", False):
            lines += ["\t".join(cell.text for cell in row.cells) for row in shape.table.rows]
    return lines
