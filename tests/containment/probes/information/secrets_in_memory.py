"""Code finds no secret of the host in its own memory."""
# covers: known failure: a forked template that has seen secrets

import contextlib
import os
from pathlib import Path

from probe import bait, held, reached


def in_environment(content: bytes, name: bytes) -> bool:
    """Whether the name stands there as in an environment: behind a NUL, and before an equals sign. The two are never put
    together here, because code would find its own copy."""
    at = content.find(name)
    while at >= 0:
        end = at + len(name)
        if content[at - 1 : at] == b"\0" and content[end : end + 1] == b"=":
            return True
        at = content.find(name, end)
    return False


names = [name for name in bait.environment if len(name) > 12 and name.startswith(("CARGO_", "CELLBLOCK_", "NEXTEST_"))]
with open("/proc/self/mem", "rb", buffering=0) as memory:
    for line in Path("/proc/self/maps").read_text().splitlines():
        area, rights, *_ = line.split()
        if "r" not in rights:
            continue
        start, end = (int(part, 16) for part in area.split("-"))
        with contextlib.suppress(OSError, OverflowError):
            memory.seek(start)
            content = memory.read(min(end - start, 64 << 20))
            for name in names:
                if in_environment(content, name.encode()):
                    reached(name)
held(f"looked for {len(names)} names in {os.getpid()}")
