"""Code cannot have the CPU before everybody else."""
# covers: CIRCLE, cpu, direct

import os

from probe import holds_if, reached

with holds_if(OSError):
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    reached("real time")
