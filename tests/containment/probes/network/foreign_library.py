"""Code cannot open a connection by calling the C library past Python."""
# covers: known failure: a sandbox that patches the socket module

import ctypes
import os
import struct

from probe import bait, held, reached

libc = ctypes.CDLL(None, use_errno=True)
descriptor = libc.socket(2, 1, 0)
address = struct.pack("!BxH4s8x", 2, bait.tcp_port, bytes([127, 0, 0, 1]))
address = struct.pack("=H", 2) + address[2:]
if descriptor < 0 or libc.connect(descriptor, address, len(address)) != 0:
    held(os.strerror(ctypes.get_errno()))
reached(f"{len(os.read(descriptor, 20))} bytes")
