"""Code with a loopback cannot pin memory for sending."""
# covers: memory that Linux counts per user: SO_ZEROCOPY
# limits: {"network": "loopback"}

import ctypes
import socket

from probe import decide_by_answer, syscall

LEVEL, OPTION = 1, 60
with socket.socket(socket.AF_INET) as own:
    value = ctypes.c_int(1)
    decide_by_answer(syscall(54, own.fileno(), LEVEL, OPTION, ctypes.byref(value), ctypes.sizeof(value)), "SO_ZEROCOPY")
