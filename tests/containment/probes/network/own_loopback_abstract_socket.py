"""Code with a loopback cannot connect to an abstract Unix socket of the host."""
# covers: known failure: abstract sockets belong to the network namespace
# limits: {"network": "loopback"}

import socket

from probe import bait, holds_if, reached

with holds_if(OSError), socket.socket(socket.AF_UNIX) as connection:
    connection.settimeout(5)
    connection.connect("\0" + bait.abstract)
    reached(f"{len(connection.recv(100))} bytes")
