"""Code with a loopback cannot exchange datagrams with the host."""
# covers: SandboxEval, external communication
# limits: {"network": "loopback"}

import socket

from probe import bait, holds_if, reached

with holds_if(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
    asker.settimeout(5)
    asker.connect(("127.0.0.1", bait.udp_port))
    asker.send(b"?")
    reached(f"an answer of {len(asker.recv(100))} bytes")
