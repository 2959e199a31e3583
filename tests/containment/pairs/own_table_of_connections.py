"""Two sandboxes with a loopback do not see each other's listeners in the kernel's tables."""
# limits: {"network": "loopback"}

import socket
from pathlib import Path


def leave(token: str) -> object:
    """Listens on a port."""
    return socket.create_server(("127.0.0.1", port(token)))


def find(token: str) -> bool:
    """Reads the table."""
    return f":{port(token):04X} " in Path("/proc/net/tcp").read_text()


def port(token: str) -> int:
    """Makes a port of a token."""
    return 20_000 + int(token[-3:], 16)
