"""Code cannot change the priority of another process."""
# covers: SandboxEval, dangerous operations; slowing others down

import os

from probe import bait, holds_if, reached

with holds_if(OSError):
    os.setpriority(os.PRIO_PROCESS, bait.bystander, 5)
    reached("it is slower now")
