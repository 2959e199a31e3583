"""Two sandboxes do not see each other's sockets in the kernel's tables."""

import socket
from pathlib import Path


def leave(token: str) -> object:
    """Listens under that name."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("\0" + token)
    return listener


def find(token: str) -> bool:
    """Reads the table."""
    return token in Path("/proc/net/unix").read_text()
