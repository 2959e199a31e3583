"""Two sandboxes with a loopback do not receive each other's datagrams."""
# limits: {"network": "loopback"}

import socket
import threading


def leave(token: str) -> object:
    """Answers datagrams on a port."""
    own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    own.bind(("0.0.0.0", port(token)))

    def answer() -> None:
        while True:
            own.sendto(b"here", own.recvfrom(100)[1])

    threading.Thread(target=answer, daemon=True).start()
    return own


def find(token: str) -> bool:
    """Asks it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asker.settimeout(5)
        asker.connect(("127.0.0.1", port(token)))
        try:
            asker.send(b"?")
            return asker.recv(100) == b"here"
        except OSError:
            return False


def port(token: str) -> int:
    """Makes a port of a token."""
    return 20_000 + int(token[-3:], 16)
