"""Code cannot see the files of another process through its root."""
# covers: known failure: /proc/1/root

import os

from probe import holds_if, reached

with holds_if(OSError):
    reached(os.listdir("/proc/1/root/"))
