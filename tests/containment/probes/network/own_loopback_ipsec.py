"""Code with a loopback cannot set rules of IPsec."""
# covers: kernel surface: xfrm
# limits: {"network": "loopback"}

import ctypes
import socket

from probe import decide_by_answer, syscall

LEVEL, OPTION = 0, 17
with socket.socket(socket.AF_INET) as own:
    value = ctypes.create_string_buffer(64)
    decide_by_answer(syscall(54, own.fileno(), LEVEL, OPTION, ctypes.byref(value), ctypes.sizeof(value)), "IP_XFRM_POLICY")
