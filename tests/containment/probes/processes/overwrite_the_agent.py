"""Code cannot overwrite the program of the process that runs it."""
# covers: known failure: runc's /proc/self/exe

import os

from probe import holds_if, reached

with holds_if(OSError):
    reached(os.open("/proc/1/exe", os.O_RDONLY))
