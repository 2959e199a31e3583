"""Code with a loopback cannot replace the rules of the packet filter."""
# covers: kernel surface: ip_tables, CVE-2021-22555
# limits: {"network": "loopback"}

import ctypes
import socket

from probe import decide_by_answer, syscall

LEVEL, OPTION = 0, 64
with socket.socket(socket.AF_INET) as own:
    value = ctypes.create_string_buffer(64)
    decide_by_answer(syscall(54, own.fileno(), LEVEL, OPTION, ctypes.byref(value), ctypes.sizeof(value)), "IPT_SO_SET_REPLACE")
