"""The layout of a text with separated fields, found from its first lines: separator, quotes, decimal mark.

A comma-separated file means what it always meant. For other files, a number is only read as one if its marks can mean nothing
else; values that could be two numbers stay text, and a note names them.
"""

from __future__ import annotations

import csv
import io
import re

# Bytes and records of a file that are looked at.
SAMPLE = 1 << 16
_RECORDS = 1000
# Separates nothing: each line is one field.
NONE = "\x1f"
NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
_DIRECTIVE = re.compile(r'"?sep=(.)"?[ \t]*\r?\n')
_MISSING = frozenset({"", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "#N/A", "-nan", "<NA>"})
_GROUP = "[. \u00a0\u202f'’]"
_COUNT = re.compile(r"[+-]?\d+")
_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
_POINT = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")
# One group of three digits: a fraction, or thousands.
EITHER = r"[+-]?[1-9]\d{0,2}[.,]\d{3}"
_GROUPED_COMMA = re.compile(rf"[+-]?\d{{1,3}}({_GROUP})\d{{3}}(?:\1\d{{3}})*,\d+")
_GROUPED_POINT = re.compile(r"[+-]?\d{1,3}([, \u00a0\u202f'’])\d{3}(?:\1\d{3})*\.\d+")
_MILLIONS = re.compile(r"[+-]?\d{1,3}([.,])\d{3}(?:\1\d{3})+")
_DAY_FIRST = re.compile(r"\d{1,2}\.\d{1,2}\.(?:\d{4}|\d{2})(?:[ T]\d.*)?")

Rows = list[list[str]]


class Column:
    """Marks of a column's values, all of which are numbers."""

    def __init__(self) -> None:
        # Values with a decimal comma, with a decimal point, and those that could be fractions or thousands.
        self.comma = self.point = self.either_comma = self.either_point = False
        # Marks between thousands, by decimal mark.
        self.groups: dict[str, str] = {}

    @staticmethod
    def of(values: list[str]) -> Column | None:
        """Returns the marks of a column; None if it has other values than numbers."""
        column = Column()
        return column if values and all(map(column._takes, values)) else None

    def _takes(self, value: str) -> bool:
        if _COUNT.fullmatch(value):
            return True
        for pattern, decimal in ((_GROUPED_COMMA, ","), (_GROUPED_POINT, ".")):
            found = pattern.fullmatch(value)
            if found:
                self.groups[decimal] = found[1]
                return True
        found = _MILLIONS.fullmatch(value)
        if found:
            self.groups["," if found[1] == "." else "."] = found[1]
        elif _COMMA.fullmatch(value):
            if re.fullmatch(EITHER, value):
                self.either_comma = True
            else:
                self.comma = True
        elif _POINT.fullmatch(value):
            if re.fullmatch(EITHER, value):
                self.either_point = True
            else:
                self.point = True
        else:
            return False
        return True


class Layout:
    """How to read a text."""

    def __init__(self, separator: str) -> None:
        self.separator = separator
        self.quote = '"'
        self.decimal = "."
        # Lines before the header.
        self.skipped = 0
        # Whether each row ends with a separator that the header lacks.
        self.trailing = False
        # Columns by position: those to keep as text, and those to convert after reading, with their marks.
        self.texts: list[int] = []
        self.grouped: dict[int, tuple[str, str]] = {}
        # Columns of whole numbers, in a file that does not tell its decimal mark.
        self.counts: list[int] = []
        # Columns of numbers in a file with decimal commas: later values may have marks between thousands.
        self.numbers: list[int] = []
        self.notes: list[str] = []


def find(text: str, cut: bool, default: str) -> Layout:
    """Finds the layout of a text from its beginning. `cut` says that more follows."""
    layout = Layout(default)
    directive = _DIRECTIVE.match(text)
    if directive:
        layout.separator, layout.skipped = directive[1], 1
        text = text[directive.end() :]
        layout.notes.append(f"separator: {name_of(layout.separator)}, from the line `sep={directive[1]}`, which was left out")
        rows = _rows(text, cut, layout.separator, layout.quote)
        layout.trailing = _is_trailing(rows)
    else:
        rows = _choose(layout, text, cut, default)
    if layout.trailing:
        layout.notes.append("rows end with a separator that the header lacks, which was left out")
    if layout.separator != "," and rows and (layout.separator != default or default != ","):
        _find_numbers(layout, rows, ambiguous_points=layout.separator in (";", NONE))
    return layout


def name_of(separator: str) -> str:
    """Returns a separator in words."""
    name = NAMES.get(separator)
    return name if name and separator == "\t" else f"{name} (`{separator}`)" if name else f"`{separator}`"


def _rows(text: str, cut: bool, separator: str, quote: str) -> Rows:
    rows: Rows = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator, quotechar=quote):
            if row:
                rows.append(row)
            if len(rows) > _RECORDS:
                return rows
    except csv.Error:
        return []
    return rows[:-1] if cut else rows


def _is_even(rows: Rows) -> bool:
    """Returns whether a separator gives a table: some columns, and rows as long as the header."""
    if not rows or len(rows[0]) < 2:
        return False
    width = len(rows[0])
    body = rows[1:]
    return _is_trailing(rows) or (
        all(len(row) <= width for row in body) and sum(len(row) == width for row in body) >= len(body) * 0.9
    )


def _is_trailing(rows: Rows) -> bool:
    return len(rows) > 1 and len(rows[0]) > 0 and all(len(row) == len(rows[0]) + 1 and not row[-1] for row in rows[1:])


def _is_led(rows: Rows) -> bool:
    """Returns whether each row has one field more than the header: the name of the row."""
    return len(rows) > 1 and len(rows[0]) > 1 and all(len(row) == len(rows[0]) + 1 for row in rows[1:])


def _choose(layout: Layout, text: str, cut: bool, default: str) -> Rows:
    """Finds the separator and the quotes, and returns the first rows."""
    others = [separator for separator in NAMES if separator != default]
    plain = _rows(text, cut, default, '"')
    tables = {separator: _rows(text, cut, separator, '"') for separator in others}
    fitting = [separator for separator in others if _is_even(tables[separator])]
    best = max(fitting, key=lambda it: len(tables[it][0]), default=None)
    if _is_even(plain) and not (best and _is_prose(plain[0])):
        layout.trailing = _is_trailing(plain)
        if best and len(plain) > 1 and len(tables[best]) > 1:
            width = len(tables[best][0])
            layout.notes.append(f"separator: {name_of(default)}; {name_of(best)} would give a table, too, of {width} columns")
        return plain
    if best is None:
        best = next((it for it in others if _is_led(tables[it])), None) if not _is_led(plain) else None
    if best is not None:
        layout.separator, layout.trailing = best, _is_trailing(tables[best])
        layout.notes.append(f"separator: {name_of(best)}")
        return _single_quoted(layout, text, cut) or tables[best]
    return _quoted(layout, text, cut) or _one_column(layout, text, cut, plain)


def _is_prose(header: list[str]) -> bool:
    """Returns whether commas of a header are those of its names, such as `Amount, EUR`."""
    return all(name.startswith(" ") for name in header[1:])


def _single_quoted(layout: Layout, text: str, cut: bool) -> Rows | None:
    """Reads a text again if all names of its header are in single quotes."""
    header = text.split("\n", 1)[0].rstrip("\r")
    quoted = re.fullmatch(rf"'[^']*'(?:{re.escape(layout.separator)}'[^']*')*", header)
    rows = _rows(text, cut, layout.separator, "'") if quoted else []
    if not _is_even(rows):
        return None
    layout.quote = "'"
    layout.notes.append("quotes: single")
    layout.trailing = _is_trailing(rows)
    return rows


def _quoted(layout: Layout, text: str, cut: bool) -> Rows | None:
    """Tries single quotes, for files that make a table only with them."""
    if "'" not in text:
        return None
    for separator in (layout.separator, *NAMES):
        rows = _rows(text, cut, separator, "'")
        if _is_even(rows) and any(f"{separator}'" in line or line.startswith("'") for line in text.splitlines()[:_RECORDS]):
            layout.quote = "'"
            layout.notes.append("quotes: single")
            if separator != layout.separator:
                layout.notes.append(f"separator: {name_of(separator)}")
                layout.separator = separator
            layout.trailing = _is_trailing(rows)
            return rows
    return None


def _one_column(layout: Layout, text: str, cut: bool, plain: Rows) -> Rows:
    """Reads a file whose header has one name as one column, unless its rows have a name each."""
    if not plain or len(plain[0]) != 1 or all(len(row) == 1 for row in plain):
        layout.trailing = _is_trailing(plain)
        return plain
    if _is_trailing(plain):
        layout.trailing = True
        return plain
    lines = _rows(text, cut, NONE, '"')
    values = [row[0].strip() for row in lines[1:] if row]
    named = all(len(row) == 2 for row in plain[1:]) and not any(", " in value for value in values)
    if named and Column.of(values) is None:
        return plain
    layout.separator = NONE
    layout.notes.append("separator: none, as the header has one name; commas in the rows belong to its values")
    return lines


def _find_numbers(layout: Layout, rows: Rows, ambiguous_points: bool) -> None:
    width = len(rows[0])
    columns: dict[int, Column] = {}
    for at in range(width):
        values = [row[at].strip() for row in rows[1:] if at < len(row)]
        values = [value for value in values if value not in _MISSING]
        column = Column.of(values)
        if column is not None:
            columns[at] = column
        elif values and all(map(_DAY_FIRST.fullmatch, values)):
            layout.notes.append(
                f"dates in `{rows[0][at]}` are left as text: pd.to_datetime(…, dayfirst=True) converts days such as {values[0]}"
            )
    has_comma = any(it.comma or "," in it.groups for it in columns.values())
    has_point = any(it.point or "." in it.groups for it in columns.values())
    by_point = any(it.groups.get(",") == "." for it in columns.values())
    if has_comma and not has_point:
        layout.decimal = ","
        layout.numbers = [at for at, it in columns.items() if not it.groups and not it.either_point]
        layout.notes.append("decimal mark: comma")
    if ambiguous_points and not has_comma and not has_point:
        layout.counts = [at for at, it in columns.items() if not it.either_point and not it.either_comma]
    for at, column in columns.items():
        name = rows[0][at]
        if len(column.groups) > 1 or (column.comma and column.point):
            layout.texts.append(at)
            layout.notes.append(f"`{name}` is left as text: it has both decimal commas and decimal points")
        elif column.groups or (column.comma and layout.decimal == "."):
            decimal = next(iter(column.groups), ",")
            layout.grouped[at] = (decimal, column.groups.get(decimal, ""))
            if column.groups:
                layout.notes.append(f"thousands mark in `{name}`: {_mark(column.groups[decimal])}")
            if layout.decimal != decimal:
                layout.notes.append(f"decimal mark in `{name}`: {'comma' if decimal == ',' else 'point'}")
        elif column.either_point and not column.point:
            if layout.decimal == "," and by_point:
                layout.grouped[at] = (",", ".")
                layout.notes.append(f"thousands mark in `{name}`: point")
            elif layout.decimal == "," or (ambiguous_points and not has_point):
                layout.texts.append(at)
                layout.notes.append(ambiguous(name, "1.234"))
        if column.either_comma and not column.comma and layout.decimal == "." and at not in layout.grouped:
            layout.texts.append(at)
            layout.notes.append(ambiguous(name, "1,234"))


def _mark(mark: str) -> str:
    return {".": "point", ",": "comma", "'": "apostrophe", "’": "apostrophe"}.get(mark, "space")


def ambiguous(name: str, example: str) -> str:
    """Returns the note for a column of numbers that could be two."""
    return f"`{name}` is left as text: values such as {example} are either fractions or thousands"
