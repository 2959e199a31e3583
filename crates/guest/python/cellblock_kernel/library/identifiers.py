"""Columns of a separated text whose digits are identifiers, not numbers: `01067`, `+4915112345678`.

As a number, an identifier loses its zeros and its sign, and nobody can tell afterwards. Such columns stay text, and a note
names them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from cellblock_kernel.library.separators import Layout
from cellblock_kernel.library.source import Source, contains

# More bytes than a field with an identifier has.
_OVERLAP = 128
# Also with a fraction: `01.02` is a day, or a number of a chapter.
_ZEROS = r"[+-]?0\d+(?:[.,]\d+)?"
# A cell of a page with such digits.
IN_PAGE = re.compile(rb">\s*" + _ZEROS.encode() + rb"\s*<")
# Telephone numbers. In a column with negative numbers, a plus is a sign.
_PLUS = r"\+\d{7,15}"


def keep(source: Source, layout: Layout, frame: Any, texts_of: Callable[[list[int]], Any]) -> None:
    """Replaces columns of numbers by their texts if these are identifiers. `texts_of` reads columns once more."""
    numbers = [at for at in range(frame.shape[1]) if str(frame.dtypes.iloc[at]) in ("int64", "uint64", "float64", "object")]
    if not numbers or not may_have(source, layout):
        return
    texts = texts_of(numbers)
    for place, at in enumerate(numbers):
        column = texts.iloc[:, place]
        found = _identifier(column)
        if found is not None:
            frame.isetitem(at, column.set_axis(frame.index))
            layout.texts.append(at)
            source.notes.append(note(frame.columns[at], found))


def of_polars(source: Source, frame: Any, texts_of: Callable[[list[str]], Any]) -> list[str]:
    """Returns the columns of numbers in a data frame of polars that are identifiers."""
    numbers = [name for name, kind in frame.schema.items() if kind.is_numeric()]
    if not numbers:
        return []
    texts = texts_of(numbers)
    kept = []
    for name in numbers:
        column = texts[name].drop_nulls().str.strip_chars()
        # A plus is text for polars anyway.
        found = column.filter(column.str.contains(f"^{_ZEROS}$"))
        if len(found):
            kept.append(name)
            source.notes.append(note(name, found[0]))
    return kept


def with_zeros(column: Any, pattern: str = _ZEROS) -> str | None:
    """Returns the first text of a column that begins with a zero before other digits."""
    found = column[column.str.fullmatch(pattern, na=False).astype(bool)]
    return str(found.iloc[0]) if len(found) else None


def note(name: Any, example: str) -> str:
    """Returns the note for a column of identifiers."""
    start = "zeros" if "0" in example[:2] else "`+`"
    return f"`{name}` is left as text: values such as {example} begin with {start}, which numbers lose"


def may_have(source: Source, layout: Layout) -> bool:
    """Returns whether a text has a field that looks like an identifier. Most have none, and are read only once."""
    if source.encoding.startswith(("utf-16", "utf-32")):
        return True
    with source.open() as file:
        return contains(file, _patterns(layout, source.encoding), _OVERLAP, b"\n")


def _patterns(layout: Layout, encoding: str) -> list[re.Pattern[bytes]]:
    """Returns patterns that begin with a character each: these are searched several times faster than one with a choice."""
    quote, separator = (mark.encode(encoding.removesuffix("-sig"), "replace") for mark in (layout.quote, layout.separator))
    ends = re.escape(b"\r\n\t " + quote + separator)
    starts = (separator, quote, b"\n", b"\r", b" ")
    zeros = [re.compile(re.escape(start) + _ZEROS.encode() + rb"[" + ends + b"]") for start in dict.fromkeys(starts)]
    return [*zeros, re.compile(rb"\+\d{7,15}[" + ends + b"]")]


def _identifier(column: Any) -> str | None:
    """Returns an identifier of a column of text, if it has some."""
    column = column.dropna().str.strip()
    zeros = with_zeros(column)
    return zeros if zeros is not None or column.str.startswith("-").any() else with_zeros(column, _PLUS)
