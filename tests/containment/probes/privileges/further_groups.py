"""Code cannot join further groups."""
# covers: SandboxEval, dangerous operations; privilege escalation

import os

from probe import holds_if, reached

with holds_if(OSError):
    os.setgroups([0, 6])
    reached(os.getgroups())
