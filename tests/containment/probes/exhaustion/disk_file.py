"""Code cannot write more than its disk holds."""
# covers: CIRCLE, disk, direct
# limits: {"disk_bytes": 16777216}
# ends: limit_exceeded disk

from probe import reached

with open("big", "wb") as file:
    for _ in range(64):
        file.write(b"x" * (1 << 20))
reached("64 MiB")
