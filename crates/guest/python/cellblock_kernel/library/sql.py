"""What cells call: `sql`, which queries the session's data frames with DuckDB."""

from __future__ import annotations

import re
import sys
from functools import cache
from importlib.util import find_spec
from typing import Any

from cellblock_kernel.cell import lineage
from cellblock_kernel.library import sql_rows, sql_tables

_WORD = re.compile(r"\w+")
# Words of a query that may mean columns of decimals: casts, and files that are read.
_DECIMALS = re.compile(r"decimal|numeric|\bdec\b|'[^']*\.\w+'|\bread_", re.IGNORECASE)
_LISTED = 10
_FRAMES = frozenset({("pandas", "DataFrame"), ("polars", "DataFrame"), ("polars", "LazyFrame"), ("pyarrow", "Table")})
# Of statements that return rows or write a file; nothing else would outlive the call. A pivot is several statements.
_KINDS = frozenset({"SELECT", "EXPLAIN", "COPY", "MULTI"})
_SETTINGS: dict[str, Any] = {
    # The database has no thread of its own: a kernel with threads cannot be copied for a rescue.
    "threads": 1,
    # There is no network to get them from, and no disk to spill to.
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "temp_directory": "",
    # Tables are the frames that are registered, not variables of this module.
    "python_enable_replacements": False,
}


def is_available() -> bool:
    """Tells whether the image has DuckDB."""
    return find_spec("duckdb") is not None


def sql(query: str, /, **values: Any) -> Any:
    """Runs one SQL statement of DuckDB over the session's data frames, and returns its rows as a data frame.

    Tables are variables that hold data frames of pandas, polars or Arrow: `sql("select city, sum(n) as n from df group by all")`.
    A value is the parameter `$name`, a data frame the table `name`: `sql("select * from t where n > $least", t=df[:9], least=3)`.
    The result is a data frame of polars if all tables are, else of pandas. Numbers are exact: totals of whole numbers beyond 64
    bits, and decimals of tables, are `decimal.Decimal` in pandas; `::double` makes them floats.
    """
    if not isinstance(query, str):
        raise TypeError(f"sql: the query must be a string, not {type(query).__name__}")
    import duckdb

    variables = {name: value for name, value in vars(sys.modules["__main__"]).items() if _library(value)}
    given = {name: value for name, value in values.items() if _library(value)}
    parameters = {name: value for name, value in values.items() if name not in given}
    tables = _named(query, variables) | given
    lineage.note_read(tables.keys() - given.keys())
    with _database().cursor() as connection:
        try:
            kind = _check(connection.extract_statements(query))
            try:
                return _rows(connection, query, parameters, tables)
            except (duckdb.NotImplementedException, duckdb.InvalidInputException):
                # Of a table that DuckDB cannot read as a whole, a statement may still read some columns.
                missing = {name: sql_tables.unreadable(connection, frame) for name, frame in tables.items()}
                if not any(missing.values()):
                    raise
                rest = {name: sql_tables.without(frame, missing[name]) for name, frame in tables.items()}
                _register(connection, rest)
                if kind != "EXPLAIN":
                    sql_tables.check_unread(connection, query, parameters, tables, missing)
                return _rows(connection, query, parameters, rest)
        except (duckdb.CatalogException, duckdb.BinderException) as error:
            known = _described(variables | given)
            raise type(error)(f"{error}\n\nTables (variables that hold data frames): {known}") from None
        except RuntimeError as error:
            if str(error) == "Query interrupted":
                # DuckDB has taken the interrupt.
                raise KeyboardInterrupt from None
            raise


def _register(connection: Any, tables: dict[str, Any]) -> None:
    for name, frame in tables.items():
        connection.register(name, frame)


def _rows(connection: Any, query: str, parameters: dict[str, Any], tables: dict[str, Any]) -> Any:
    _register(connection, tables)
    relation = connection.sql(query, params=parameters or None)
    libraries = {_library(frame) for frame in tables.values()}
    library = "polars" if libraries == {"polars"} or find_spec("pandas") is None else "pandas"
    # Files may hold decimals, too. Without its module, which a kernel imports late, no parameter is one.
    module = sys.modules.get("decimal")
    decimals = (
        bool(_DECIMALS.search(query))
        or any(map(sql_tables.has_decimals, tables.values()))
        or (module is not None and any(isinstance(value, module.Decimal) for value in parameters.values()))
    )
    return sql_rows.frame(relation, library, decimals)


def _check(statements: list[Any]) -> str:
    """Returns the kind of the only statement."""
    if len(statements) != 1:
        raise ValueError(f"sql: expected one statement, found {len(statements)}; call sql once for each")
    kind = statements[0].type.name
    if kind not in _KINDS:
        raise ValueError(
            f"sql: {kind} is not supported, because no table outlives the call; use a select, and assign its result to a variable"
        )
    return str(kind)


@cache
def _database() -> Any:
    import duckdb

    try:
        return duckdb.connect(":memory:", config=_SETTINGS | {"async_threads": 0})
    except duckdb.InvalidInputException:
        # Versions before 2 have no such threads.
        return duckdb.connect(":memory:", config=_SETTINGS)


def _named(query: str, variables: dict[str, Any]) -> dict[str, Any]:
    """Returns the variables that a query may mean. SQL does not distinguish cases; where variables do, the exact name counts."""
    words = set(_WORD.findall(query))
    anyhow = {word.lower() for word in words}
    found = {name.lower(): name for name in variables if name.lower() in anyhow}
    found |= {name.lower(): name for name in variables if name in words}
    return {name: variables[name] for name in found.values()}


def _library(value: Any) -> str | None:
    """Returns the library of a data frame. It is not imported for that."""
    for kind in type(value).__mro__:
        library = kind.__module__.partition(".")[0]
        if (library, kind.__name__) in _FRAMES:
            return library
    return None


def _described(frames: dict[str, Any]) -> str:
    known = [f"{name} ({', '.join(map(str, _columns(frame)))})" for name, frame in frames.items()]
    more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
    return "; ".join(known[:_LISTED]) + more if known else "none"


def _columns(frame: Any) -> list[Any]:
    names = getattr(frame, "column_names", None)
    if names is None:
        names = frame.collect_schema().names() if type(frame).__name__ == "LazyFrame" else list(frame.columns)
    return names if len(names) <= _LISTED else [*names[:_LISTED], f"{len(names) - _LISTED} more"]
