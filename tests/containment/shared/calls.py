"""The C library's calls for what two processes may share, as Python has them not."""

import ctypes

libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
libc.sem_open.restype = ctypes.c_void_p
CREATE, MODE = 0o1000, 0o600
O_CREAT = 0o100


def key(token: str) -> int:
    """Makes a System V key of a token."""
    return int(token[-7:], 16) + 1
