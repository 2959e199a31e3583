"""Code with a loopback cannot reach the host by an IPv4 address in an IPv6 socket."""
# covers: known failure: filters that compare families and not addresses
# limits: {"network": "loopback"}

import socket

from probe import bait, holds_if, reached

with holds_if(OSError), socket.socket(socket.AF_INET6) as connection:
    connection.settimeout(5)
    connection.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    connection.connect(("::ffff:127.0.0.1", bait.tcp_port))
    reached(f"{len(connection.recv(100))} bytes")
