"""Code with a loopback cannot reach a TCP service of the host."""
# covers: SandboxEval, external communication
# limits: {"network": "loopback"}

import socket

from probe import bait, holds_if, reached

with holds_if(OSError):
    connection = socket.create_connection(("127.0.0.1", bait.tcp_port), timeout=5)
    reached(f"{len(connection.recv(100))} bytes")
