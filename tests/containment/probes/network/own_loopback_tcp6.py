"""Code with a loopback cannot reach a TCP service of the host over IPv6."""
# covers: SandboxEval, external communication
# limits: {"network": "loopback"}

import socket

from probe import bait, holds_if, reached

with holds_if(OSError):
    connection = socket.create_connection(("::1", bait.tcp6_port), timeout=5)
    reached(f"{len(connection.recv(100))} bytes")
