"""Code cannot get a terminal."""
# covers: kernel surface of container escapes; terminal injection
# gvisor: gVisor has terminals of its own in the machine

import os

from probe import holds_if, reached

with holds_if(OSError):
    reached(os.openpty())
