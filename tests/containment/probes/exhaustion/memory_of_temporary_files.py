"""Files in memory count against the limit on memory."""
# covers: CIRCLE, memory, indirect: caching to /tmp
# limits: {"memory_bytes": 134217728}
# ends: limit_exceeded memory

from probe import reached

with open("cache", "wb") as cache:
    for _ in range(256):
        cache.write(b"x" * (1 << 20))
reached("256 MiB")
