"""Code cannot open a kernel parameter for writing."""
# covers: known failure: core_pattern runs a program of the attacker as root on the host

import os

from probe import holds_if, reached

with holds_if(OSError):
    reached(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))
