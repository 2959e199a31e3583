"""Code cannot see the machine's devices in /sys."""
# covers: SandboxEval, information exposure; hardware

import os

from probe import holds_if, reached

with holds_if(OSError):
    reached(os.listdir("/sys/class"))
