"""Code cannot list the descriptors of the process that starts everything in its sandbox."""
# covers: known failure: guest control channel abuse
# gvisor: gVisor lists the descriptors of every process of the machine; those that can be opened are lock files of ours

import os

from probe import holds_if, reached

with holds_if(OSError):
    reached(os.listdir("/proc/1/fd"))
