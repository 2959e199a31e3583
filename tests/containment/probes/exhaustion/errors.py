"""Code cannot write without end to its error output."""
# covers: CIRCLE, disk, indirect: warnings in a loop
# limits: {"stream_bytes": 1048576, "stream_kept_bytes": 65536}
# ends: limit_exceeded output_bytes

import sys

from probe import reached

for _ in range(20_000):
    print("y" * 1000, file=sys.stderr)
reached("20 MB")
