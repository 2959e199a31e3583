"""Code cannot choose on which CPUs another process runs."""
# covers: SandboxEval, dangerous operations; slowing others down

import os

from probe import bait, holds_if, reached

with holds_if(OSError):
    os.sched_setaffinity(bait.bystander, {0})
    reached("it runs on the first CPU now")
