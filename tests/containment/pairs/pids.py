"""Two sandboxes cannot signal each other's processes by number."""

import os
import subprocess

MANY = 40


def leave(token: str) -> object:
    """Starts so many that no number could be missed by chance."""
    return [subprocess.Popen(["sleep", "60"]) for _ in range(MANY)]


def find(token: str) -> bool:
    """Counts the numbers that could be signalled."""
    found = 0
    for pid in range(2, 1000):
        try:
            os.kill(pid, 0)
        except OSError:
            continue
        found += 1
    return found >= MANY
