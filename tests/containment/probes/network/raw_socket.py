"""Code cannot open a raw socket."""
# covers: SandboxEval, external communication; packet forging

import socket

from probe import holds_if, reached

with holds_if(OSError):
    reached(socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
