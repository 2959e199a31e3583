"""Code cannot signal the process that starts everything in its sandbox."""
# covers: known failure: killing the guest's agent

import os

from probe import holds_if, reached

with holds_if(OSError):
    os.kill(1, 0)
    reached("it could be killed")
