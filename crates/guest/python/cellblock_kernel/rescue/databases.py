"""Threads of DuckDB's databases, which end and start with a setting.

A database keeps idle threads as long as it is open. They end before a copy of the kernel is made, and start again when
the kernel, or a copy that has become it, runs the next code. Only databases can be reached that are variables of the
session, and the one that `duckdb.sql` and its like use.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from cellblock_kernel.rescue import owners

# The settings for threads, with values at which there are none. `async_threads` is one of DuckDB 2.
_ALONE = {"threads": 1, "async_threads": 0}

# Connections whose databases have no threads at the moment, with their settings.
_paused: list[tuple[Any, dict[str, int]]] = []


def pause() -> None:
    """Ends the threads of idle databases."""
    duckdb = sys.modules.get("duckdb")
    kind = getattr(duckdb, "DuckDBPyConnection", None)
    if kind is None:
        return
    for value in list(vars(sys.modules["__main__"]).values()):
        if isinstance(value, kind):
            _pause(value)
    # If there is none, this would make one, with threads.
    if "duckdb" in owners.owners(os.listdir("/proc/self/task")):
        _pause(duckdb.default_connection())  # type: ignore[union-attr]


def _pause(connection: Any) -> None:
    try:
        # On a cursor, so that a result that is still being read stays.
        with connection.cursor() as cursor:
            query = "select name, value::bigint from duckdb_settings() where name in ('threads', 'async_threads')"
            before = {name: value for name, value in cursor.execute(query).fetchall() if value > _ALONE[name]}
            if before:
                _paused.append((connection, before))
                _set(cursor, {name: _ALONE[name] for name in before})
    except Exception:
        pass  # it is closed, or its settings are locked


def resume() -> None:
    """Starts them again."""
    while _paused:
        connection, before = _paused.pop()
        try:
            with connection.cursor() as cursor:
                _set(cursor, before)
        except Exception:
            continue


def _set(cursor: Any, settings: dict[str, int]) -> None:
    for name, value in settings.items():
        cursor.execute(f"set global {name} = {value}")
