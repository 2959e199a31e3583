"""A program that code starts cannot write without end either."""
# covers: CIRCLE, disk, indirect: a chatty tool
# limits: {"stream_bytes": 1048576, "stream_kept_bytes": 65536}
# ends: limit_exceeded output_bytes

import subprocess

from probe import reached

subprocess.run(["head", "-c", "20000000", "/dev/zero"], check=True)
reached("20 MB")
