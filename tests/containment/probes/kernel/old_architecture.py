"""Code cannot make calls of the 32-bit architecture, whose numbers are others."""
# covers: known failure: a filter that does not check the architecture

import ctypes
import mmap
import os

from probe import held, reached

# mov eax, 359 (socket); mov ebx, 2 (AF_INET); mov ecx, 1; xor edx, edx; int 0x80; ret, with rbx kept
code = bytes.fromhex("53b867010000bb02000000b90100000031d2cd805bc3")
child = os.fork()
if child == 0:
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    os._exit(0 if call() >= 0 else 1)
status = os.waitpid(child, 0)[1]
if status == 0:
    reached("a TCP socket by the 32-bit call")
held(f"the call ended with status {status}")
