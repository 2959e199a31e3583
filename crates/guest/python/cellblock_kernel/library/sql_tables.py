"""Data frames as tables of DuckDB, also those with columns that it cannot read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any


def unreadable(connection: Any, frame: Any) -> list[str]:
    """Returns the columns of a data frame that DuckDB cannot read."""
    import duckdb

    found = []
    for name in _names(frame):
        try:
            connection.register("cellblock_column", _selected(frame, name))
            connection.execute("from cellblock_column limit 1").fetchall()
        except duckdb.Error:
            found.append(name)
        finally:
            connection.unregister("cellblock_column")
    return found


def without(frame: Any, names: list[str]) -> Any:
    """Returns a data frame with nulls in some columns, which are the last: a query that only counts rows may read
    the first."""
    rest = [name for name in _names(frame) if name not in names]
    if hasattr(frame, "set_column"):
        pyarrow = import_module("pyarrow")
        for at, name in enumerate(frame.column_names):
            if name in names:
                frame = frame.set_column(at, name, pyarrow.nulls(frame.num_rows))
        return frame.select(rest + names)
    if hasattr(frame, "with_columns"):
        nulls = [import_module("polars").lit(None).alias(name) for name in names]
        return frame.select(*rest, *nulls)
    frame = frame[rest].copy()
    frame[names] = None
    return frame


def check_unread(
    connection: Any, query: str, parameters: dict[str, Any], tables: dict[str, Any], missing: dict[str, list[Any]]
) -> None:
    """Fails if a statement reads one of the missing columns of its tables, with its name, its type and the remedy."""
    import duckdb

    try:
        plan = connection.execute(f"explain (format json) {query}", parameters).fetchall()[0][1]
    except duckdb.BinderException:
        # Without its type, the use of a column may have no meaning.
        plan = json.dumps({"name": "_SCAN", "extra_info": {"Projections": re.findall(r"\w+", query)}})
    read = list(_read(json.loads(plan)))
    for table, columns in missing.items():
        for name in columns:
            if any(str(name) in names or f'"{name}"' in filters for names, filters in read):
                raise unsupported(table, tables[table], name)


def unsupported(table: str, frame: Any, name: Any) -> TypeError:
    """Returns the error for a statement that reads a column that DuckDB cannot read."""
    how = f", for example with {table}[{name!r}].astype(str)" if hasattr(frame, "iloc") else ""
    return TypeError(
        f"sql: the column {name!r} of {table} has the type {_type(frame, name)}, which DuckDB does not support; "
        f"make it text or numbers first{how}, or select only other columns"
    )


def has_decimals(frame: Any) -> bool:
    """Returns whether a data frame has a column of decimals, or one of Python objects that may be decimals."""
    types = {_type(frame, name).lower() for name in _names(frame)}
    return any("decimal" in one or one == "object" for one in types)


def _read(node: Any) -> Iterator[tuple[list[str], str]]:
    """Yields the columns and filters of all scans of a plan."""
    if isinstance(node, list):
        for one in node:
            yield from _read(one)
        return
    details = node.get("extra_info") or {}
    if node.get("name", "").endswith("_SCAN") and isinstance(details, dict):
        names = details.get("Projections") or []
        yield [names] if isinstance(names, str) else names, str(details.get("Filters") or "")
    yield from _read(node.get("children", []))


def _names(frame: Any) -> list[Any]:
    names = getattr(frame, "column_names", None)
    if names is not None:
        return list(names)
    return list(frame.collect_schema().names() if hasattr(frame, "collect_schema") else frame.columns)


def _selected(frame: Any, name: Any) -> Any:
    return frame[[name]] if hasattr(frame, "iloc") else frame.select([name])


def _type(frame: Any, name: Any) -> str:
    if hasattr(frame, "collect_schema"):
        return str(frame.collect_schema()[name])
    if hasattr(frame, "column_names"):
        return str(frame.schema.field(name).type)
    found = frame.dtypes[name]
    return f"category of {found.categories.dtype}" if hasattr(found, "categories") else str(found)
