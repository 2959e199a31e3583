"""Two sandboxes cannot leave a process number at their standard input."""

import fcntl
import os


def leave(token: str) -> object:
    """Has signals of it sent here."""
    return fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid()), fcntl.fcntl(0, fcntl.F_SETSIG, 34)


def find(token: str) -> bool:
    """Asks which signal it would be."""
    return fcntl.fcntl(0, fcntl.F_GETSIG) == 34
