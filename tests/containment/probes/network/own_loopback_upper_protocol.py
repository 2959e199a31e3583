"""Code with a loopback cannot put another protocol on a connection."""
# covers: kernel surface: TCP_ULP (kTLS, espintcp)
# limits: {"network": "loopback"}

import ctypes
import socket

from probe import decide_by_answer, syscall

LEVEL, OPTION = 6, 31
with socket.socket(socket.AF_INET) as own:
    value = ctypes.create_string_buffer(b"tls")
    decide_by_answer(syscall(54, own.fileno(), LEVEL, OPTION, ctypes.byref(value), ctypes.sizeof(value)), "TCP_ULP")
