"""Texts that are read as one column although their lines look like several fields."""

from __future__ import annotations

import csv
import io
import re

from cellblock_kernel.library import separators
from cellblock_kernel.library.separators import Layout

_LINES = 1000
# Separators that are never guessed, because values have them, too.
_RARE = (":", "^", "~", "¦", "§", "\x01")
_NAME = re.compile(r"[\w .-]+")
_NONE = "separator: none found, so each line is one value"
_READ = "to read them as columns,"


def note(layout: Layout, text: str) -> str | None:
    """Returns the note for a text that has no separator, although another one would give fields."""
    if layout.skipped or layout.trailing:
        return None
    header, *rows = _fields(text, layout.separator, layout.quote) or [[]]
    if len(header) != 1 or not rows:
        return None
    for mark in (*separators.NAMES, *_RARE):
        widths = [] if mark == layout.separator or mark not in header[0] else _widths(text, mark, layout.quote)
        if widths and (mark in separators.NAMES or all(map(_NAME.fullmatch, header[0].split(mark)))):
            return (
                f"{_NONE}; separated by {separators.name_of(mark)}, lines have {_range(widths)} fields; {_READ} {_directive(mark)}"
            )
    widths = [len(line.split()) for line in text.splitlines()[:_LINES] if line.strip()]
    if len(set(widths)) == 1 and widths[0] >= 3:
        how = f'{_READ} bind the file as bytes and use pd.read_csv(…, sep=r"\\s+")'
        return f"{_NONE}; lines have {widths[0]} words; {how}"
    return None


def _directive(mark: str) -> str:
    line = "`sep=` and a tab" if mark == "\t" else f"`sep={mark}`" if mark.isprintable() else f"`sep=` and {mark!r}"
    return f"begin the file with the line {line}"


def _fields(text: str, separator: str, quote: str) -> list[list[str]]:
    lines = io.StringIO(text, newline="")
    found: list[list[str]] = []
    try:
        for row in filter(None, csv.reader(lines, delimiter=separator, quotechar=quote)):
            found.append(row)
            if len(found) > _LINES:
                break
    except csv.Error:
        return []
    return found


def _widths(text: str, mark: str, quote: str) -> list[int]:
    """Returns the numbers of fields of lines, or nothing if the header or most rows have only one."""
    widths = [len(row) for row in _fields(text, mark, quote)]
    several = sum(width > 1 for width in widths[1:])
    return widths if widths and widths[0] > 1 and several * 2 > len(widths) - 1 else []


def _range(widths: list[int]) -> str:
    least, most = min(widths), max(widths)
    return str(least) if least == most else f"{least} to {most}"
