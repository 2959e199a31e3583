"""Code with a loopback cannot give it another address."""
# covers: SandboxEval, dangerous operations; network configuration
# limits: {"network": "loopback"}

import fcntl
import socket
import struct

from probe import holds_if, reached

SIOCSIFADDR = 0x8916
address = struct.pack("=HH4s8x", socket.AF_INET, 0, socket.inet_aton("203.0.113.9"))
with holds_if(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
    fcntl.ioctl(any_socket, SIOCSIFADDR, struct.pack("16s16s8x", b"lo:1", address))
    reached("the address 203.0.113.9")
