"""Code cannot become another user."""
# covers: SandboxEval, dangerous operations; privilege escalation

import os

from probe import holds_if, reached

with holds_if(OSError):
    os.setresuid(1, 1, 1)
    reached(f"uid {os.getuid()}")
