"""Two sandboxes do not share the open file that their standard input is."""

import fcntl
import os


def leave(token: str) -> object:
    """Sets a flag of it."""
    return fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_NONBLOCK)


def find(token: str) -> bool:
    """Looks at the flag."""
    return bool(fcntl.fcntl(0, fcntl.F_GETFL) & os.O_NONBLOCK)
