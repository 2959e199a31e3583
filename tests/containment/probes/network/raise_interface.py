"""Code cannot switch a network interface on."""
# covers: SandboxEval, dangerous operations; network configuration

import fcntl
import socket
import struct

from probe import holds_if, reached

SIOCSIFFLAGS, UP_AND_RUNNING = 0x8914, 65
# Any socket serves for this request, also one of the family that sandboxes have.
with holds_if(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as any_socket:
    fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", UP_AND_RUNNING))
    reached("loopback is up")
