"""Code cannot ask the kernel for interfaces and routes."""
# covers: SandboxEval, information exposure; network configuration

import socket

from probe import holds_if, reached

with holds_if(OSError), socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as netlink:
    netlink.bind((0, 0))
    reached("a route socket")
