"""Code finds no secret of the host in its own memory."""
# covers: known failure: a forked template that has seen secrets

import contextlib
import os
from pathlib import Path

from probe import bait, held, reached

needle = "-".join((bait.mark[:-1], "")).encode()
names = [name for name in bait.environment if len(name) > 12 and name.startswith(("CARGO_", "CELLBLOCK_", "NEXTEST_"))]
needles = [f"{name}=".encode() for name in names]
with open("/proc/self/mem", "rb", buffering=0) as memory:
    for line in Path("/proc/self/maps").read_text().splitlines():
        area, rights, *_ = line.split()
        if ("[heap]" not in line and "[stack]" not in line) or "r" not in rights:
            continue
        start, end = (int(part, 16) for part in area.split("-"))
        with contextlib.suppress(OSError):
            memory.seek(start)
            content = memory.read(min(end - start, 64 << 20))
            for found in needles:
                if any(content[at - 1 : at] == b"\0" for at in [content.find(found)] if at > 0):
                    reached(found)
held(f"looked for {len(names)} names in {os.getpid()}")
