"""Code with a loopback cannot make a UDP socket decode tunnels."""
# covers: kernel surface: UDP_ENCAP
# limits: {"network": "loopback"}

import ctypes
import socket

from probe import decide_by_answer, syscall

LEVEL, OPTION = 17, 100
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
    value = ctypes.c_int(2)
    decide_by_answer(syscall(54, own.fileno(), LEVEL, OPTION, ctypes.byref(value), ctypes.sizeof(value)), "UDP_ENCAP")
