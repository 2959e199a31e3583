"""Code with a loopback cannot take connections of other addresses."""
# covers: SandboxEval, dangerous operations; IP_TRANSPARENT
# limits: {"network": "loopback"}

import ctypes
import socket

from probe import decide_by_answer, syscall

LEVEL, OPTION = 0, 19
with socket.socket(socket.AF_INET) as own:
    value = ctypes.c_int(1)
    decide_by_answer(syscall(54, own.fileno(), LEVEL, OPTION, ctypes.byref(value), ctypes.sizeof(value)), "IP_TRANSPARENT")
