"""Code cannot take more memory than its limit as a file without a name."""
# covers: CIRCLE, memory, direct
# limits: {"memory_bytes": 134217728}
# ends: limit_exceeded memory

import os

from probe import reached

file = os.memfd_create("load")
for _ in range(256):
    os.write(file, b"x" * (1 << 20))
reached("256 MiB")
