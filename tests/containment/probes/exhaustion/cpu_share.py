"""Many processes together get no more CPU than the limit."""
# covers: CIRCLE, cpu, direct
# limits: {"cpu_millis": 200}
# ordinary: without cgroups nothing bounds the share of the CPU
# gvisor: a machine has the processor time of the backend's limit, and gVisor counts time in which a thread waits

import os
import time

from probe import held, reached

WALL = 2.0
children = []
start = time.monotonic()
for _ in range(16):
    child = os.fork()
    if child == 0:
        # The scheduler shares between sessions first.
        os.setsid()
        end = time.monotonic() + WALL
        while time.monotonic() < end:
            pass
        os._exit(0)
    children.append(child)
used = 0.0
for child in children:
    usage = os.wait4(child, 0)[2]
    used += usage.ru_utime + usage.ru_stime
share = used / (time.monotonic() - start)
if share > 0.35:
    reached(f"{share:.2f} of a CPU")
held(f"{share:.2f} of a CPU")
