"""Code cannot signal a process of the host."""
# covers: SandboxEval, dangerous operations; killing processes

import os

from probe import bait, holds_if, reached

with holds_if(OSError):
    os.kill(bait.bystander, 0)
    reached("it could be killed")
