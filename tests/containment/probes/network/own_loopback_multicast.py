"""Code with a loopback cannot join groups of the network."""
# covers: kernel surface: memory of multicast filters
# limits: {"network": "loopback"}

import ctypes
import socket

from probe import decide_by_answer, syscall

LEVEL, OPTION = 0, 35
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
    value = ctypes.c_uint64(0x0100007F010000E0)
    decide_by_answer(syscall(54, own.fileno(), LEVEL, OPTION, ctypes.byref(value), ctypes.sizeof(value)), "IP_ADD_MEMBERSHIP")
