"""Code cannot make the kernel keep more messages for it than its limit."""
# covers: CIRCLE, memory, indirect: buffers of the kernel
# ends: completed

import ctypes
import os

from probe import held, reached

libc = ctypes.CDLL(None, use_errno=True)


class Attributes(ctypes.Structure):
    """``struct mq_attr``."""

    _fields_ = [(name, ctypes.c_long) for name in ("flags", "most", "size", "current")] + [("reserved", ctypes.c_long * 4)]


made = []
O_CREAT_RDWR = 0o102
for number in range(5):
    name = f"/probe-{number}".encode()
    queue = libc.mq_open(name, O_CREAT_RDWR, 0o600, ctypes.byref(Attributes(0, 10, 8192, 0)))
    if queue < 0:
        break
    made.append(name)
for name in made:
    libc.mq_unlink(name)
if len(made) == 5:
    reached("5 queues of 80 KiB")
held(f"{os.strerror(ctypes.get_errno())} after {len(made)} queues")
