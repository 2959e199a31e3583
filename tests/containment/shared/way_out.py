"""Requests through the proxy of a sandbox, whose list has `allowed.invalid`, and `secret.invalid` with a secret. Without a proxy,
the bait is asked directly."""

import os
import socket
from typing import NoReturn
from urllib.parse import urlsplit

from probe import bait, held, reached, seen


def ask(request: str) -> bytes:
    """Sends bytes to the proxy; answers the beginning of what comes back."""
    proxy = os.environ.get("HTTP_PROXY")
    place = urlsplit(proxy) if proxy else None
    address = (place.hostname, place.port) if place else ("127.0.0.1", bait.tcp_port)
    with socket.create_connection(address, timeout=20) as connection:
        if proxy:
            connection.sendall(request.encode())
        answer = b""
        while b"\r\n\r\n" not in answer and bait.mark.encode() not in answer:
            part = connection.recv(4096)
            if not part:
                break
            answer += part
        return answer


def decide_by_status(*requests: str) -> NoReturn:
    """Ends the probe: it holds if the proxy refuses each of these requests."""
    for request in requests:
        answer = ask(request)
        seen(answer, "an answer")
        status = answer.split(b" ", 2)[1:2]
        if status not in ([b"400"], [b"403"], [b"501"]) and answer:
            reached(f"{request.splitlines()[0]}: {answer[:80]!r}")
    held("each was refused")
