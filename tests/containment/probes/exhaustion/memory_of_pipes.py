"""Code cannot make the kernel hold more for it in pipes than its limit."""
# covers: CIRCLE, memory, indirect: buffers of the kernel
# limits: {"memory_bytes": 134217728, "open_files": 1024}
# ends: limit_exceeded memory | completed | limit_exceeded open_files
# gvisor: gVisor holds pipes in its own memory, which only the machine's cgroup limits

import fcntl
import os

from probe import held, reached

F_SETPIPE_SZ = 1031
ends: list[int] = []
stored = 0
try:
    for _ in range(400):
        reader, writer = os.pipe2(os.O_NONBLOCK)
        ends += [reader, writer]
        fcntl.fcntl(writer, F_SETPIPE_SZ, 1 << 20)
        stored += os.write(writer, b"x" * (1 << 20))
except OSError as error:
    refusal = error
else:
    reached(f"{stored >> 20} MiB")
finally:
    for end in ends:
        os.close(end)
held(f"{refusal} after {stored >> 20} MiB")
