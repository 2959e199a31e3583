"""Code cannot write more to the temporary folder than its limit."""
# covers: CIRCLE, disk, indirect: temporary files that nobody removes
# limits: {"disk_bytes": 16777216}
# ends: limit_exceeded disk

import tempfile

from probe import reached

kept = []
for _ in range(64):
    file = tempfile.TemporaryFile()
    file.write(b"x" * (1 << 20))
    file.flush()
    kept.append(file)
reached("64 MiB")
