"""Readers of office documents for cells; their libraries are imported on first use."""

import importlib
from os import PathLike
from typing import Any

Path = str | PathLike[str]


def _library(module: str, package: str, reader: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{reader} needs the package {package}: name it in the cell's `requirements`") from error


def read_pdf_text(path: Path, *, max_pages: int | None = None) -> str:
    """Returns the text of a PDF, its pages separated by blank lines."""
    reader = _library("pypdf", "pypdf", "read_pdf_text").PdfReader(path)
    pages = reader.pages if max_pages is None else reader.pages[:max_pages]
    return "\n\n".join((page.extract_text() or "").strip() for page in pages)


def read_excel(path: Path, *, sheet_name: str | int | list[str | int] | None = 0, **options: Any) -> Any:
    """Returns a sheet as a data frame; `sheet_name=None` returns a dict of all sheets."""
    pandas = _library("pandas", "pandas", "read_excel")
    _library("openpyxl", "openpyxl", "read_excel")
    return pandas.read_excel(path, sheet_name=sheet_name, **options)


def read_pptx_text(path: Path) -> str:
    """Returns the text of a presentation, each slide under a line `Slide N`."""
    presentation = _library("pptx", "python-pptx", "read_pptx_text").Presentation(path)
    slides = []
    for number, slide in enumerate(presentation.slides, 1):
        lines = [f"Slide {number}"]
        for shape in slide.shapes:
            if shape.has_text_frame:
                lines.append(shape.text_frame.text)
            elif getattr(shape, "has_table", False):
                lines += ["\t".join(cell.text for cell in row.cells) for row in shape.table.rows]
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            lines.append("Notes: " + slide.notes_slide.notes_text_frame.text)
        slides.append("\n".join(line for line in lines if line.strip()))
    return "\n\n".join(slides)
