"""Names the libraries to which threads belong.

Few threads have a telling name, so the code in which a thread waits counts: of the addresses on its stack, the first
that is code of a library of the image. Where a thread's stack cannot be read, its name is all there is.
"""

from __future__ import annotations

import os
import struct
from typing import Optional

_open, _pread, _close, _getpid = os.open, os.pread, os.close, os.getpid
_words = struct.iter_unpack
# Addresses, and the file if its code tells of a library.
Mapping = tuple[int, int, Optional[str]]
_STACK = 16 * 1024
# Files of these are called by any library.
_COMMON = ("libc.", "libc-", "libm.", "libstdc++", "libgcc", "libpthread", "ld-", "libpython", "python", "[")
# Parts of a file's path, or beginnings of a thread's name, of libraries whose files have other names.
_LIBRARIES = (("polars", "polars"), ("arrow", "pyarrow"), ("duckdb", "duckdb"), ("vl_convert", "vl-convert"))
_NAMES = (("polars", "polars"), ("tokio", "a Rust runtime"), ("V8", "vl-convert"), ("jemalloc", "pyarrow"))


def owners(threads: list[str]) -> list[str]:
    """Returns the libraries that threads of this process belong to."""
    main = str(_getpid())
    try:
        mappings = _mappings()
    except OSError:
        mappings = []
    found = {owner for owner in (_owner(thread, mappings) for thread in threads if thread != main) if owner is not None}
    return sorted(found) or ["a library's"]


def _mappings() -> list[Mapping]:
    found = []
    with open("/proc/self/maps") as maps:
        for line in maps:
            places, access, *rest = line.split(maxsplit=5)
            first, after = (int(place, 16) for place in places.split("-"))
            path = rest[-1].rstrip("\n") if len(rest) == 4 else ""
            is_telling = "x" in access and path and not path.rsplit("/", 1)[-1].startswith(_COMMON)
            found.append((first, after, path if is_telling else None))
    return found


def _owner(thread: str, mappings: list[Mapping]) -> str | None:
    """Returns the library of a thread; None if the thread has ended."""
    try:
        with open(f"/proc/self/task/{thread}/comm") as file:
            name = file.read().strip()
    except OSError:
        return None
    try:
        owner = _by_stack(thread, mappings)
    except (OSError, ValueError):
        owner = None
    return owner or next((owner for start, owner in _NAMES if name.startswith(start)), "a library's")


def _by_stack(thread: str, mappings: list[Mapping]) -> str | None:
    with open(f"/proc/self/task/{thread}/syscall") as file:
        fields = file.read().split()
    if len(fields) < 3:
        return None  # it runs
    top = int(fields[-2], 16)
    end = next((after for first, after, _ in mappings if first <= top < after), top)
    # Through the file: memory of a thread that ends meanwhile is an error, not a crash.
    memory = _open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        stack = _pread(memory, min(_STACK, end - top), top)
    finally:
        _close(memory)
    for (word,) in _words("P", stack[: len(stack) // 8 * 8]):
        for first, after, path in mappings:
            if path is not None and first <= word < after:
                return _library(path)
    return None


def _library(path: str) -> str:
    for part, owner in _LIBRARIES:
        if part in path:
            return owner
    beyond = path.partition("site-packages/")[2]
    return (beyond or path.rsplit("/", 1)[-1]).split("/")[0].split(".")[0].lstrip("_")
