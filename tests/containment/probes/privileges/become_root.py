"""Code cannot become root."""
# covers: SandboxEval, dangerous operations; privilege escalation

import os

from probe import holds_if, reached

with holds_if(OSError):
    os.setuid(0)
    reached(f"uid {os.getuid()}")
