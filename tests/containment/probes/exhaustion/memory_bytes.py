"""Code cannot take more memory than its limit as bytes."""
# covers: CIRCLE, memory, direct
# limits: {"memory_bytes": 134217728}
# ends: limit_exceeded memory

from probe import reached

block = b"x" * (256 << 20)
reached(f"{len(block)} bytes")
