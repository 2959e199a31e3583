"""Code cannot take more memory than its limit by a list that grows."""
# covers: CIRCLE, memory, direct
# limits: {"memory_bytes": 134217728}
# ends: limit_exceeded memory

from probe import reached

grown: list[bytes] = []
while len(grown) < 256:
    grown.append(b"x" * (1 << 20))
reached(f"{len(grown)} MiB")
