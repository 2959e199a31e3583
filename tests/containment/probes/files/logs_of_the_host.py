"""Code cannot read the host's logs."""
# covers: SandboxEval, information exposure; system logs

import os

from probe import holds_if, reached

with holds_if(OSError):
    reached(os.listdir("/var/log"))
