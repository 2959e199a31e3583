"""Finding files by their content and by their names."""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from itertools import islice
from typing import Any

from record import below, describe, lines_of, require, require_directory, resolve

MAX_SEARCHED = 8 << 20
MAX_LINE = 2000


def searchable_lines(path: str) -> list[str]:
    """Returns the lines of a text file without their ends, and none of a file that is binary or large."""
    try:
        if os.path.getsize(path) > MAX_SEARCHED or not os.path.isfile(path):
            return []
        with open(path, "rb") as file:
            return [line.rstrip("\r\n") for line in lines_of(file.read().decode())]
    except (OSError, UnicodeDecodeError):
        return []


def grep(
    cwd: str,
    query: str,
    path: str = ".",
    regex: bool = True,
    case_insensitive: bool = False,
    include: Sequence[str] = (),
    match_per_line: bool = True,
    max_results: int = 50,
) -> dict[str, Any]:
    """Finds lines, or the files that have one."""
    path = resolve(path, cwd)
    require(os.path.exists(path), "search path", path)
    try:
        pattern = re.compile(query if regex else re.escape(query), re.IGNORECASE if case_insensitive else 0)
    except (re.error, RecursionError, OverflowError) as error:
        hint = "set regex to false to search for the text itself"
        raise ValueError(f"invalid regular expression: {error}; {hint}") from None

    def matches() -> Iterator[dict[str, Any]]:
        files = [path] if os.path.isfile(path) else (entry.path for entry in below(path))
        for file in files:
            if include and not any(fnmatch(os.path.basename(file), one) for one in include):
                continue
            for number, line in enumerate(searchable_lines(file), 1):
                if pattern.search(line) and match_per_line:
                    yield {"file": file, "line": number, "content": line[:MAX_LINE]}
                elif pattern.search(line):
                    yield {"file": file}
                    break

    found = list(islice(matches(), max_results + 1))
    truncated = len(found) > max_results
    return {"query": query, "path": path, "matches": found[:max_results], "truncated": truncated}


def described(entry: os.DirEntry[str], kind: str) -> dict[str, Any] | None:
    """Describes an entry if it is a directory, or is not, as requested, and still exists."""
    try:
        if kind != "any" and entry.is_dir() != (kind == "directory"):
            return None
        return describe(entry.path)
    except OSError:
        return None


def glob(
    cwd: str,
    names: Sequence[str],
    paths: Sequence[str],
    limit: int,
    path: str = ".",
    exclude: Sequence[str] = (),
    kind: str = "any",
) -> dict[str, Any]:
    """Finds files by patterns of their names, or of their paths below the directory."""
    path = resolve(path, cwd)
    require_directory(path)

    def hits(entry: os.DirEntry[str]) -> bool:
        inside = os.path.relpath(entry.path, path)
        wanted = any(fnmatch(entry.name, one) for one in names) or any(fnmatch(inside, one) for one in paths)
        return wanted and not any(fnmatch(entry.name, one) or fnmatch(inside, one) for one in exclude)

    matches = (described(entry, kind) for entry in below(path) if hits(entry))
    found = list(islice(filter(None, matches), limit + 1))
    return {"directory": describe(path), "entries": found[:limit], "total": len(found)}


def names(
    cwd: str, limit: int, query: str = "", path: str = ".", kind: str = "any", show_hidden: bool = False
) -> dict[str, Any]:
    """Finds files by a part of their names, the best first."""
    path = resolve(path, cwd)
    require_directory(path)
    wanted = query.strip().lower()
    candidates = (
        # The name itself comes first, then its beginnings, then shorter names.
        (name != wanted, not name.startswith(wanted), len(name), entry.path, record)
        for entry in below(path, hidden=show_hidden)
        if wanted in (name := entry.name.lower()) and (record := described(entry, kind))
    )
    best = heapq.nsmallest(limit, candidates, key=lambda found: found[:4])
    return {"directory": describe(path), "entries": [found[4] for found in best], "total": len(best)}
