"""Code that makes children of the process above it, and ends them, takes no CPU time of the host's."""
# covers: known failure: children that another process must collect
# ends: completed | limit_exceeded memory | kernel_lost
# neighbors: their kernels have the same parent
# uncontained: nothing but a limit that is not there is tried, so there is nothing to reach

import ctypes
import os
import signal

from probe import held, stand

CLONE_PARENT = 0x8000
SYS_CLONE = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
libc = ctypes.CDLL(None, use_errno=True)
refused = 0


def bear() -> None:
    """Makes a hundred."""
    global refused
    for _ in range(100):
        child = libc.syscall(SYS_CLONE, CLONE_PARENT | signal.SIGCHLD, None, None, None, None)
        if child == 0:
            os._exit(0)
        refused += child < 0


for _ in range(3):
    bear()
stand(bear)
held(f"{refused} were refused")
