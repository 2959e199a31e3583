"""Code with a loopback has no route to the metadata of a cloud."""
# covers: known failure: credentials from 169.254.169.254
# limits: {"network": "loopback"}
# uncontained: the test has a network of its own, in which there is no such address

import socket

from probe import holds_if, reached

with holds_if(OSError):
    socket.create_connection(("169.254.169.254", 80), timeout=5)
    reached("the metadata service")
