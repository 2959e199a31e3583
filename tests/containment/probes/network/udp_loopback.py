"""Code cannot exchange UDP datagrams with a service on loopback."""
# covers: SandboxEval, external communication

import socket

from probe import bait, holds_if, reached

with holds_if(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
    asker.settimeout(5)
    asker.sendto(b"?", ("127.0.0.1", bait.udp_port))
    reached(f"{len(asker.recv(100))} bytes")
