"""Code cannot enter the working folder of another process."""
# covers: known failure: /proc/PID/cwd

import os

from probe import bait, holds_if, reached

with holds_if(OSError):
    reached(os.listdir(f"/proc/{bait.bystander}/cwd/"))
