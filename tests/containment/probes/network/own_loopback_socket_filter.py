"""Code with a loopback cannot attach a program to a connection."""
# covers: known failure: memory for compiled filters is the whole machine's
# limits: {"network": "loopback"}

import ctypes
import socket

from probe import decide_by_answer, syscall

LEVEL, OPTION = 1, 26
with socket.socket(socket.AF_INET) as own:
    value = ctypes.c_int(0)
    decide_by_answer(syscall(54, own.fileno(), LEVEL, OPTION, ctypes.byref(value), ctypes.sizeof(value)), "SO_ATTACH_FILTER")
