"""Two sandboxes do not share POSIX message queues."""

import atexit
import ctypes
import os

from calls import MODE, O_CREAT, libc

OUTSIDE = "Landlock refuses message queues, which lie in no tree that code may write to"


def leave(token: str) -> object:
    """Makes one of that name."""
    made = libc.mq_open(f"/{token}".encode(), O_CREAT | 2, MODE, None)
    if made < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    atexit.register(libc.mq_unlink, f"/{token}".encode())
    return made


def find(token: str) -> bool:
    """Opens it."""
    return libc.mq_open(f"/{token}".encode(), 0) >= 0
