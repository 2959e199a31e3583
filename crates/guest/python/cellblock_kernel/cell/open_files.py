"""Files that a cell left open: writes Python's buffers to them before the host collects files.

A script that ends closes its files; a cell ends and its files stay open. If no more descriptors are open than the
kernel's own, there is no such file. Otherwise listing them is a cheap way to see whether any file is open for writing.
Only a new one triggers a search among all Python objects for those that write to it, once.
"""

import _io
import fcntl
import gc
import os
import stat
import sys
import weakref
from collections.abc import Callable
from typing import Any

from cellblock_kernel.cell.failure import type_name

_listdir, _stat, _fstat, _fcntl = os.listdir, os.stat, os.fstat, fcntl.fcntl
_F_GETFL, _O_ACCMODE = fcntl.F_GETFL, os.O_ACCMODE
_IOBase: Any = _io._IOBase
_DESCRIPTORS = "/proc/self/fd"
_LOOKED_AT = 128

Place = tuple[int, int, int]


class OpenFiles:
    """Remembers the files that are open for writing, and the objects that write to them."""

    def __init__(self) -> None:
        # The kernel's own, by name: a cell's files never get these numbers.
        self._own = frozenset(filter(_is_open, _listed()))
        # 0 if the operating system does not count them.
        self._count = len(self._own) if _count() == len(self._own) else 0
        self._known: set[Place] = set()
        self._writers: list[weakref.ref[Any]] = []

    def flush(self, first: Callable[[], None]) -> None:
        """Flushes the files, and calls `first` before. A file that cannot be written to is named on stderr."""
        if self._count and _count() == self._count:
            # All of them are the kernel's.
            if self._known:
                self._known, self._writers = set(), []
            return
        others = _listed() - self._own
        # One of them is the listing's.
        places = _places(others) if len(others) > 1 else set()
        if not places:
            if self._known:
                self._known, self._writers = set(), []
            return
        if not places <= self._known:
            self._writers = _writers({place[0] for place in places})
        self._known = places
        if self._writers:
            first()
        for reference in self._writers:
            writer = reference()
            if writer is not None:
                _flush(writer)


def _listed() -> set[str]:
    try:
        return set(_listdir(_DESCRIPTORS))
    except OSError:
        # If the kernel may not list files below /proc, the lowest numbers are checked one by one.
        return set(map(str, range(_LOOKED_AT)))


def _count() -> int:
    """Returns the number of open descriptors, which Linux tells since 6.2 as the size of the directory; otherwise 0."""
    try:
        return _stat(_DESCRIPTORS).st_size
    except OSError:
        return 0


def _is_open(name: str) -> bool:
    """Returns whether a listed descriptor still exists; that of the listing does not."""
    try:
        _fstat(int(name))
    except OSError:
        return False
    return True


def _places(names: set[str]) -> set[Place]:
    """Returns every regular file that is open for writing, by its descriptor."""
    found: set[Place] = set()
    for number in map(int, names):
        try:
            state = _fstat(number)
            if stat.S_ISREG(state.st_mode) and _fcntl(number, _F_GETFL) & _O_ACCMODE != os.O_RDONLY:
                found.add((number, state.st_dev, state.st_ino))
        except OSError:
            continue  # the listing's own descriptor
    return found


def _writers(numbers: set[int]) -> list[weakref.ref[Any]]:
    """Returns the file objects that write to some descriptors. Only types are checked: a check of an object may
    run code."""
    is_file: dict[type, bool] = {}
    found: list[weakref.ref[Any]] = []
    for value in gc.get_objects():
        kind = type(value)
        known = is_file.get(kind)
        if known is None:
            known = is_file[kind] = _IOBase in type.mro(kind)[1:-1] and kind.__weakrefoffset__ != 0
        if known:
            try:
                if not value.closed and value.writable() and value.fileno() in numbers:
                    found.append(weakref.ref(value))
            except Exception:
                continue  # incomplete, detached, or a class of the cell with another interface
    return found


def _flush(writer: Any) -> None:
    try:
        if not writer.closed:
            writer.flush()
    except Exception as error:
        name = getattr(writer, "name", None)
        print(f"could not write out the open file {name!r}: {type_name(type(error))}: {error}", file=sys.stderr)
