"""Machine code of its own gets code nothing that the kernel does not allow."""
# covers: known failure: language-level escapes (ctypes and executable memory)

import ctypes
import mmap
import os

from probe import bait, held, reached

# mov eax, 2 (open); xor esi, esi; syscall; ret: the path is the first argument.
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes.fromhex("b80200000031f60f05c3"))
call = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_char_p)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
result = call(f"{bait.folder}/secret".encode())
if result < 0:
    held(os.strerror(-result))
reached(f"{len(os.read(result, 100))} bytes")
