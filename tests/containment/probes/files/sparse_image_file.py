"""Code cannot make a file larger than its limit by leaving holes in it."""
# covers: CIRCLE, disk, indirect
# limits: {"file_bytes": 67108864}
# ends: limit_exceeded file_bytes

from probe import reached

with open("holes", "wb") as file:
    file.truncate(100 << 20)
reached("100 MiB of holes")
