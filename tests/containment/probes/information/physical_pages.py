"""Code does not learn which physical pages it has."""
# covers: kernel surface of container escapes; rowhammer

import ctypes
from pathlib import Path

from probe import held, holds_if, reached

page = ctypes.create_string_buffer(b"x", 4096)
with holds_if(OSError), Path("/proc/self/pagemap").open("rb", buffering=0) as pagemap:
    pagemap.seek(ctypes.addressof(page) // 4096 * 8)
    if int.from_bytes(pagemap.read(8), "little") & ((1 << 55) - 1):
        reached("a frame's number")
    held("the numbers are hidden")
