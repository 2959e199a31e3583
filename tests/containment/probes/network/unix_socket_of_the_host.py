"""Code cannot connect to a Unix socket in a folder of the host."""
# covers: known failure: a mounted control socket (docker.sock)

import socket

from probe import bait, holds_if, reached

with holds_if(OSError), socket.socket(socket.AF_UNIX) as connection:
    connection.settimeout(5)
    connection.connect(bait.folder + "/socket")
    reached(f"{len(connection.recv(100))} bytes")
