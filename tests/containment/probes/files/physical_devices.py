"""Code cannot see the machine's devices in /sys."""
# covers: SandboxEval, information exposure; hardware
# gvisor: gVisor shows a tree of its own in /sys, which names no device of the host

import os

from probe import holds_if, reached

with holds_if(OSError):
    reached(os.listdir("/sys/class"))
