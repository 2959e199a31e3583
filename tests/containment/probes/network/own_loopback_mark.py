"""Code with a loopback cannot mark its packets for the host's rules."""
# covers: SandboxEval, dangerous operations; SO_MARK
# limits: {"network": "loopback"}
# gvisor: gVisor keeps the mark and never uses it

import ctypes
import socket

from probe import decide_by_answer, syscall

LEVEL, OPTION = 1, 36
with socket.socket(socket.AF_INET) as own:
    value = ctypes.c_int(1)
    decide_by_answer(syscall(54, own.fileno(), LEVEL, OPTION, ctypes.byref(value), ctypes.sizeof(value)), "SO_MARK")
