"""Two sandboxes do not see each other's processes."""

import os
import subprocess
import sys
from pathlib import Path


def leave(token: str) -> object:
    """Starts one with that name among its arguments."""
    return subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)", token])


def find(token: str) -> bool:
    """Looks at the arguments of every process."""
    pids = (name for name in os.listdir("/proc") if name.isdigit())
    return any(
        token.encode() in Path("/proc", pid, "cmdline").read_bytes() for pid in pids if os.access(f"/proc/{pid}/cmdline", os.R_OK)
    )
