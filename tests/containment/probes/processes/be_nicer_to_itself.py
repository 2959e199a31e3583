"""Code cannot raise its own priority."""
# covers: CIRCLE, cpu, direct
# gvisor: gVisor keeps a priority for each thread and schedules without it

import os

from probe import holds_if, reached

with holds_if(OSError):
    os.setpriority(os.PRIO_PROCESS, 0, -5)
    reached("a higher priority")
