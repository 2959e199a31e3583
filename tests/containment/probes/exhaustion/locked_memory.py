"""Code cannot lock memory without end."""
# covers: CIRCLE, memory, direct

import ctypes
import mmap
import os

from probe import held, reached

libc = ctypes.CDLL(None, use_errno=True)
page = mmap.mmap(-1, 128 << 20)
if libc.mlock(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(page))), ctypes.c_size_t(128 << 20)):
    held(os.strerror(ctypes.get_errno()))
reached("128 MiB")
