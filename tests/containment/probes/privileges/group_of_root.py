"""Code cannot join the group of root."""
# covers: SandboxEval, dangerous operations; privilege escalation

import os

from probe import holds_if, reached

with holds_if(OSError):
    os.setgid(0)
    reached(f"gid {os.getgid()}")
