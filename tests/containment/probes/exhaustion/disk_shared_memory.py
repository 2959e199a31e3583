"""Code cannot write more to shared memory than its limit."""
# covers: CIRCLE, disk, direct
# limits: {"shm_bytes": 16777216}
# ends: limit_exceeded disk

import os

from probe import reached

with open("/dev/shm/load", "wb") as file:
    for _ in range(64):
        file.write(b"x" * (1 << 20))
os.unlink("/dev/shm/load")
reached("64 MiB")
