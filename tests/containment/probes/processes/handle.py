"""Code cannot get a handle on a process of the host."""
# covers: SandboxEval, dangerous operations; process handles

import os

from probe import bait, holds_if, reached

with holds_if(OSError):
    reached(os.pidfd_open(bait.bystander))
