"""Code cannot take more memory than its limit through System V segments."""
# covers: CIRCLE, memory, direct
# limits: {"memory_bytes": 134217728}
# ends: limit_exceeded memory

import ctypes

from probe import reached

libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
segment = libc.shmget(0, 256 << 20, 0o1600)
address = libc.shmat(segment, None, 0)
libc.shmctl(segment, 0, None)
ctypes.memset(address, 1, 256 << 20)
reached("256 MiB")
