"""Text with separated fields as a frame, in the layout and the encoding that were detected."""

from __future__ import annotations

import io
import re
import sys
from typing import Any

from cellblock_kernel.library import identifiers, separators, unseparated
from cellblock_kernel.library.separators import Layout
from cellblock_kernel.library.source import Source, installed, rounding_note, rounds, summary, whole_numbers

_REPAIR = "check the quoting and the number of fields of that line, or bind it as bytes and parse it in the code"
_WHOLE = re.compile(r"[+-]?\d+")


def read(source: Source, separator: str) -> Any:
    """Reads a text whose fields are separated by this, unless its first lines say otherwise."""
    source.settle()
    layout = find(source, separator)
    source.notes += layout.notes
    library = installed("pandas", "polars")
    if library is None:
        return _records(source, layout)
    try:
        if library.__name__ == "polars":
            return _polars(library, source, layout)
        with source.open() as file:
            frame = library.read_csv(file, encoding=source.encoding, **_options(layout))
        if _has_row_names(source, layout, frame):
            frame = _without_row_names(source, frame)
            identifiers.keep(source, layout, frame, lambda columns: _row_texts(library, source, layout).iloc[:, columns])
        else:
            identifiers.keep(source, layout, frame, lambda columns: _texts(library, source, layout, columns))
            _check_counts(library, source, layout, frame)
            _keep_whole_numbers(library, source, layout, frame)
    except Exception as error:
        if type(error).__name__ in ("EmptyDataError", "NoDataError"):
            source.fail("the file has no columns", "give a file with at least a header line", error)
        source.fail(f"malformed: {summary(error)}", _REPAIR, error)
    return _converted(library, frame, layout, source)


def find(source: Source, separator: str) -> Layout:
    """Finds the layout of a text from its first bytes."""
    head = source.head(separators.SAMPLE)
    text = head.decode(source.encoding, "ignore")
    layout = separators.find(text, len(head) == separators.SAMPLE, separator)
    unknown = unseparated.note(layout, text)
    if unknown is not None:
        layout.notes.append(unknown)
    return layout


def _options(layout: Layout) -> dict[str, Any]:
    options: dict[str, Any] = {"sep": layout.separator}
    if layout.quote != '"':
        options["quotechar"] = layout.quote
    if layout.decimal != ".":
        options["decimal"] = layout.decimal
    if layout.skipped:
        options["skiprows"] = layout.skipped
    if layout.trailing:
        options["index_col"] = False
    kept = {**dict.fromkeys(layout.texts, "str"), **dict.fromkeys(layout.grouped, "str")}
    if kept:
        options["dtype"] = kept
    return options


def _check_counts(pandas: Any, source: Source, layout: Layout, frame: Any) -> None:
    """Keeps columns as text whose first values are whole numbers, and later ones could be fractions or thousands."""
    floats = [at for at in layout.counts if at < len(frame.columns) and str(frame.dtypes.iloc[at]) == "float64"]
    if not floats:
        return
    texts = _texts(pandas, source, layout, floats)
    for at, name in zip(floats, texts.columns):
        marked = texts[name][texts[name].str.contains(".", regex=False, na=False)].str.strip()
        if len(marked) and marked.str.fullmatch(separators.EITHER).all():
            frame.isetitem(at, texts[name])
            source.notes.append(separators.ambiguous(str(name), str(marked.iloc[0])))


def _keep_whole_numbers(pandas: Any, source: Source, layout: Layout, frame: Any) -> None:
    """Restores whole numbers of columns with gaps where a float rounds them."""
    large = [at for at in range(len(frame.columns)) if rounds(frame.iloc[:, at])]
    if not large:
        return
    texts = _texts(pandas, source, layout, large)
    for at, name in zip(large, texts.columns):
        values = [value.strip() if isinstance(value, str) else None for value in texts[name]]
        if all(value is None or _WHOLE.fullmatch(value) for value in values):
            numbers = whole_numbers(pandas, [None if value is None else int(value) for value in values], frame.index)
            frame.isetitem(at, numbers)
            source.notes.append(f"`{name}` has whole numbers that a float would round, and gaps: {numbers.dtype}")
            continue
        rounded = next((value for value in values if value and _is_rounded(value, layout)), None)
        if rounded is not None:
            source.notes.append(rounding_note(name, rounded))


def _is_rounded(text: str, layout: Layout) -> bool:
    """Returns whether a large number is another one as a float."""
    # Only here, because few files need it.
    from decimal import Decimal

    plain = text.replace(layout.decimal, ".")
    if sum(map(str.isdigit, plain)) <= sys.float_info.dig:
        return False
    try:
        exact = Decimal(plain)
        return exact.is_finite() and abs(exact) >= 2**53 and exact != Decimal(float(exact))
    except (ArithmeticError, ValueError):
        return False


def _texts(pandas: Any, source: Source, layout: Layout, columns: list[int]) -> Any:
    """Reads these columns once more, as the text that the file has."""
    options = {**_options(layout), "dtype": "str", "usecols": columns}
    with source.open() as file:
        return pandas.read_csv(file, encoding=source.encoding, **options)


def _row_texts(pandas: Any, source: Source, layout: Layout) -> Any:
    """Reads all columns once more as text, with those that pandas takes for an index."""
    with source.open() as file:
        return pandas.read_csv(file, encoding=source.encoding, **{**_options(layout), "dtype": "str"}).reset_index()


def _has_row_names(source: Source, layout: Layout, frame: Any) -> bool:
    """Whether pandas has made an index of the first fields, because the first row is longer than the header."""
    if layout.trailing:
        return False
    index = frame.index
    if type(index).__name__ != "RangeIndex" or (index.start, index.step) != (0, 1):
        return all(name is None for name in index.names)
    import csv

    lines = io.StringIO(source.head(separators.SAMPLE).decode(source.encoding, "ignore"), newline="")
    for _ in range(layout.skipped):
        lines.readline()
    try:
        rows = filter(None, csv.reader(lines, delimiter=layout.separator, quotechar=layout.quote))
        header, first = next(rows, []), next(rows, [])
    except csv.Error:
        return False
    return len(first) > len(header)


def _without_row_names(source: Source, frame: Any) -> Any:
    """Makes columns of an index that pandas took from rows that are longer than the header."""
    index = frame.index
    taken = set(map(str, frame.columns))
    free = (name for number in range(len(frame.columns) + index.nlevels) if (name := f"Unnamed: {number}") not in taken)
    names = [next(free) for _ in range(index.nlevels)]
    source.notes.append(f"rows are longer than the header: their first fields are in {', '.join(map(repr, names))}")
    return frame.reset_index(names=names)


def _converted(pandas: Any, frame: Any, layout: Layout, source: Source) -> Any:
    """Converts the columns with marks between thousands, if all of their values have them where they belong."""
    numbers = (at for at in layout.numbers if at < len(frame.columns) and at not in layout.texts)
    texts = [at for at in numbers if str(frame.dtypes.iloc[at]) in ("str", "object")]
    # Whole numbers beyond 64 bits are objects, too.
    late = [at for at in texts if pandas.api.types.infer_dtype(frame.iloc[:, at], skipna=True) == "string"]
    for at in late:
        layout.grouped[at] = (",", ".")
    for at, (decimal, mark) in layout.grouped.items():
        if at >= len(frame.columns):
            continue
        column = frame.iloc[:, at].str.strip()
        zero = identifiers.with_zeros(column, r"[+-]?0\d.*")
        if zero is not None:
            source.notes.append(identifiers.note(frame.columns[at], zero))
            continue
        if at in late and not column.str.contains(r"\.\d{3},\d", na=False).any():
            continue
        group = rf"[+-]?\d{{1,3}}(?:{re.escape(mark)}\d{{3}})+" if mark else r"[+-]?\d+"
        pattern = rf"(?:{group}|[+-]?\d*)(?:{re.escape(decimal)}\d+)?"
        if not column.dropna().str.fullmatch(pattern).all():
            source.notes.append(f"`{frame.columns[at]}` is left as text: not all of its values are such numbers")
            continue
        plain = column.str.replace(mark, "", regex=False) if mark else column
        numbers = pandas.to_numeric(plain.str.replace(decimal, ".", regex=False))
        frame.isetitem(at, numbers)
        if at in late:
            source.notes.append(f"thousands mark in `{frame.columns[at]}`: point")
    return frame


def _polars(polars: Any, source: Source, layout: Layout) -> Any:
    may_have_identifiers = identifiers.may_have(source, layout)
    if not source.notes and source.encoding == "utf-8-sig" and not may_have_identifiers:
        with source.open() as file:
            return polars.read_csv(file, separator=layout.separator)
    text = source.text()
    names = polars.read_csv(io.StringIO(text), separator=layout.separator, skip_lines=layout.skipped, n_rows=0).columns
    kept = [names[at] for at in [*layout.texts, *layout.grouped] if at < len(names)]

    def read(texts: list[str]) -> Any:
        return polars.read_csv(
            io.StringIO(text),
            separator=layout.separator,
            quote_char=layout.quote,
            decimal_comma=layout.decimal == ",",
            skip_lines=layout.skipped,
            truncate_ragged_lines=layout.trailing,
            schema_overrides=dict.fromkeys(texts, polars.String),
        )

    frame = read(kept)
    if may_have_identifiers:
        kept += identifiers.of_polars(source, frame, lambda numbers: read([*kept, *numbers]))
        frame = read(kept)
    for at, (decimal, mark) in layout.grouped.items():
        if frame[names[at]].str.contains(r"^\s*[+-]?0\d").any():
            source.notes.append(f"`{names[at]}` is left as text: some values begin with zeros, which numbers lose")
            continue
        plain = polars.col(names[at]).str.strip_chars()
        plain = plain.str.replace_all(mark, "", literal=True) if mark else plain
        frame = frame.with_columns(plain.str.replace(decimal, ".", literal=True).cast(polars.Float64, strict=False).alias("\0"))
        if frame["\0"].null_count() == frame[names[at]].null_count():
            frame = frame.with_columns(polars.col("\0").alias(names[at]))
        frame = frame.drop("\0")
    return frame


def _records(source: Source, layout: Layout) -> Any:
    import csv

    text = io.StringIO(source.text(), newline="")
    for _ in range(layout.skipped):
        text.readline()
    return list(csv.DictReader(text, delimiter=layout.separator, quotechar=layout.quote))
