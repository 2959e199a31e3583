"""Joins neighboring mappings of shared libraries, because a fork copies them one by one.

The loader maps each library in five pieces with different permissions; the few hundred libraries of an image
make two thousand mappings. Giving neighbors the same permissions lets Linux join them, which halves their
number: constants become executable like the code between them, and memory that the loader wrote and then sealed
becomes writable again. Neither weakens the sandbox: code in a kernel may call `mprotect` itself, and the
confinement is around the process, not inside it.
"""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass

_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) ([0-9a-f]+) \S+ \d+ +(/.*)")
_READ, _WRITE, _EXECUTE = 1, 2, 4


@dataclass
class Mapping:
    """A part of a file, mapped to memory."""

    start: int
    end: int
    rights: str
    offset: int
    path: str
    written: bool = False

    def goes_on_in(self, other: Mapping) -> bool:
        """Returns whether the other mapping starts where this one ends, in memory and in the file."""
        return self.path == other.path and self.end == other.start and self.offset + self.end - self.start == other.offset

    def is_constant(self) -> bool:
        """Returns whether it is code or data that has not been written to, so that all processes share its
        pages."""
        return self.rights in ("r--p", "r-xp") and not self.written


def parse(smaps: str) -> list[Mapping]:
    """Reads the mappings of files from the text of a `/proc/<pid>/smaps`, ordered by address."""
    mappings: list[Mapping] = []
    current: Mapping | None = None
    for line in smaps.splitlines():
        if found := _MAPPING.fullmatch(line):
            start, end, rights, offset, path = found.groups()
            current = Mapping(int(start, 16), int(end, 16), rights, int(offset, 16), path)
            mappings.append(current)
        elif not line[:1].isupper():
            current = None
        elif current is not None and line.startswith("Anonymous:"):
            current.written = line.split()[1] != "0"
    return mappings


def plan(mappings: list[Mapping]) -> list[tuple[int, int, int]]:
    """Returns the changes to make: starts, lengths and permissions. A written mapping is never joined with an
    unwritten one."""
    changes: list[tuple[int, int, int]] = []
    run: list[Mapping] = []
    for mapping in mappings:
        if run and run[-1].goes_on_in(mapping) and mapping.is_constant():
            run.append(mapping)
            continue
        changes += _executable(run)
        run = [mapping] if mapping.is_constant() else []
    changes += _executable(run)
    for sealed, data in zip(mappings, mappings[1:]):
        if sealed.rights == "r--p" and sealed.written and data.rights == "rw-p" and sealed.goes_on_in(data):
            changes.append((sealed.start, sealed.end - sealed.start, _READ | _WRITE))
    return changes


def _executable(run: list[Mapping]) -> list[tuple[int, int, int]]:
    if len(run) < 2 or all(mapping.rights == "r--p" for mapping in run):
        return []
    return [(run[0].start, run[-1].end - run[0].start, _READ | _EXECUTE)]


def join_mappings() -> None:
    """Joins mappings of this process. A mapping that the system does not let us change stays as it is."""
    mprotect = ctypes.CDLL(None).mprotect
    mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    with open("/proc/self/smaps", encoding="utf-8", errors="surrogateescape") as smaps:
        mappings = parse(smaps.read())
    for start, length, rights in plan(mappings):
        mprotect(start, length, rights)
