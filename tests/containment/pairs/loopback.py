"""Two sandboxes without a network do not share a loopback, as neither can use one."""

import socket

OUTSIDE = "sandboxes have no IP sockets at all"


def leave(token: str) -> object:
    """Listens on a port."""
    return socket.create_server(("127.0.0.1", port(token)))


def find(token: str) -> bool:
    """Connects to it."""
    try:
        socket.create_connection(("127.0.0.1", port(token)), timeout=5)
    except OSError:
        return False
    return True


def port(token: str) -> int:
    """Makes a port of a token."""
    return 20_000 + int(token[-3:], 16)
