"""Code cannot read frames off an interface."""
# covers: SandboxEval, external communication; sniffing

import socket

from probe import holds_if, reached

with holds_if(OSError):
    reached(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0x0300))
