"""Two sandboxes have no memory in common that one of them can write to."""

import ctypes
import mmap
from pathlib import Path


def leave(token: str) -> object:
    """Writes to a shared mapping, and to all that were there before."""
    page = mmap.mmap(-1, 4096)
    page.write(token.encode())
    for start in shared():
        ctypes.memmove(start, token.encode(), len(token))
    return page


def find(token: str) -> bool:
    """Reads all shared mappings."""
    return any(ctypes.string_at(start, len(token)) == token.encode() for start in shared())


def shared() -> list[int]:
    """Lists where mappings begin that are shared and writable."""
    found = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        area, rights, *_ = line.split()
        if rights.startswith("rw") and rights.endswith("s"):
            found.append(int(area.partition("-")[0], 16))
    return found
