"""Code cannot raise its own priority."""
# covers: CIRCLE, cpu, direct

import os

from probe import holds_if, reached

with holds_if(OSError):
    os.setpriority(os.PRIO_PROCESS, 0, -5)
    reached("a higher priority")
