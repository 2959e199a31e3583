"""Use of resources by all programs of a sandbox."""

from __future__ import annotations

import os
import time
from typing import Any


def used() -> tuple[int, float]:
    """Returns bytes of memory, and seconds of processors."""
    pages = ticks = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
            pages += int(fields[21])
        except (OSError, ValueError, IndexError):
            continue
    return pages * os.sysconf("SC_PAGE_SIZE"), ticks / os.sysconf("SC_CLK_TCK")


def usage(cwd: str) -> dict[str, Any]:
    """Measures for a moment."""
    since = time.monotonic()
    _, before = used()
    time.sleep(0.05)
    memory, after = used()
    spent = max(after - before, 0) / (time.monotonic() - since)
    disk = os.statvfs(cwd)
    total = disk.f_blocks * disk.f_frsize
    return {
        "ts": int(time.time()),
        "cpu_count": os.cpu_count() or 1,
        "cpu_used_pct": round(spent * 100, 2),
        "mem_used": memory,
        "disk_used": total - disk.f_bfree * disk.f_frsize,
        "disk_total": total,
    }
