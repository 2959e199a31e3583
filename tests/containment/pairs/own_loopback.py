"""Two sandboxes with a loopback do not share it."""
# limits: {"network": "loopback"}

import socket


def leave(token: str) -> object:
    """Listens on a port."""
    return socket.create_server(("127.0.0.1", port(token)))


def find(token: str) -> bool:
    """Connects to it."""
    with socket.socket() as connection:
        connection.settimeout(5)
        return connection.connect_ex(("127.0.0.1", port(token))) == 0


def port(token: str) -> int:
    """Makes a port of a token."""
    return 20_000 + int(token[-3:], 16)
