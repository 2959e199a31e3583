"""Code cannot write without end to its output."""
# covers: CIRCLE, disk, indirect: printing everything
# limits: {"stream_bytes": 1048576, "stream_kept_bytes": 65536}
# ends: limit_exceeded output_bytes

from probe import reached

for _ in range(20_000):
    print("y" * 1000)
reached("20 MB")
