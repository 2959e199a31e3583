"""Code cannot open a TCP connection to loopback."""
# covers: SandboxEval, external communication

import socket

from probe import bait, holds_if, reached

with holds_if(OSError):
    connection = socket.create_connection(("127.0.0.1", bait.tcp_port), timeout=5)
    reached(f"{len(connection.recv(100))} bytes")
