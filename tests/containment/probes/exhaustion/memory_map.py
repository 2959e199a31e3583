"""Code cannot take more memory than its limit by mapping it."""
# covers: CIRCLE, memory, direct
# limits: {"memory_bytes": 134217728}
# ends: limit_exceeded memory

import mmap

from probe import reached

page = mmap.mmap(-1, 256 << 20)
for offset in range(0, 256 << 20, 4096):
    page[offset] = 1
reached("256 MiB")
