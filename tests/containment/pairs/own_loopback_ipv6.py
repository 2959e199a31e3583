"""Two sandboxes with a loopback do not share it over IPv6, also not with a server on all addresses."""
# limits: {"network": "loopback"}

import socket


def leave(token: str) -> object:
    """Listens on a port of every address."""
    return socket.create_server(("::", port(token)), family=socket.AF_INET6)


def find(token: str) -> bool:
    """Connects to it."""
    with socket.socket(socket.AF_INET6) as connection:
        connection.settimeout(5)
        return connection.connect_ex(("::1", port(token))) == 0


def port(token: str) -> int:
    """Makes a port of a token."""
    return 20_000 + int(token[-3:], 16)
