"""Code cannot open the kernel's log."""
# covers: SandboxEval, information exposure; system logs

import os

from probe import holds_if, reached

with holds_if(OSError):
    reached(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK))
