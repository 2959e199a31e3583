"""Two sandboxes have no memory in common that one of them can write to."""

import mmap
from pathlib import Path


def leave(token: str) -> object:
    """Writes to a shared mapping, and to all that were there before."""
    page = mmap.mmap(-1, 4096)
    page.write(token.encode())
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        for start, _ in shared():
            memory.seek(start)
            memory.write(token.encode())
    return page


def find(token: str) -> bool:
    """Reads all shared mappings."""
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        for start, _ in shared():
            memory.seek(start)
            if memory.read(64).startswith(token.encode()):
                return True
    return False


def shared() -> list[tuple[int, int]]:
    """Lists mappings that are shared and writable."""
    found = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        area, rights, *_ = line.split()
        if rights.startswith("rw") and rights.endswith("s"):
            start, end = (int(part, 16) for part in area.split("-"))
            found.append((start, end))
    return found
