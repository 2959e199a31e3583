"""Code with a loopback cannot reach the host by the address 0.0.0.0."""
# covers: known failure: 0.0.0.0 is this machine, too
# limits: {"network": "loopback"}

import socket

from probe import bait, holds_if, reached

with holds_if(OSError):
    connection = socket.create_connection(("0.0.0.0", bait.tcp_port), timeout=5)
    reached(f"{len(connection.recv(100))} bytes")
