"""Directories that the host collects files from: whether they are empty, which they are after most cells."""

from __future__ import annotations

import os

from cellblock_kernel.cell import places

_stat, _scandir = os.stat, os.scandir

# The size of an empty directory in the file system that rooms have there, tmpfs; each entry adds to it. Elsewhere a
# directory may keep its size when a file is made in it, so that only a look tells.
_EMPTY = 40

# Device, inode, and the time of the last change.
State = tuple[int, int, int]


class EmptyDirectories:
    """Remembers the state in which a directory was seen empty, which is one system call to compare."""

    def __init__(self) -> None:
        self._seen: dict[str, State] = {}

    def is_empty(self, directory: str) -> bool:
        """Returns whether a directory has no entries; false if that cannot be seen."""
        path = places.real(directory)
        try:
            found = _stat(path)
            state = (found.st_dev, found.st_ino, found.st_mtime_ns)
            if found.st_size == _EMPTY and self._seen.get(directory) == state:
                return True
            with _scandir(path) as entries:
                empty = next(entries, None) is None
        except OSError:
            return False
        if empty and found.st_size == _EMPTY:
            self._seen[directory] = state
        return empty
