"""Code with a loopback cannot forge the state of a connection."""
# covers: kernel surface: TCP_REPAIR
# limits: {"network": "loopback"}

import ctypes
import socket

from probe import decide_by_answer, syscall

LEVEL, OPTION = 6, 19
with socket.socket(socket.AF_INET) as own:
    value = ctypes.c_int(1)
    decide_by_answer(syscall(54, own.fileno(), LEVEL, OPTION, ctypes.byref(value), ctypes.sizeof(value)), "TCP_REPAIR")
