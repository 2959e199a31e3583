"""Code cannot signal the process that starts everything in its sandbox."""
# covers: known failure: killing the guest's agent
# microvm: its kernel is older than Linux 6.12 and has no scopes of Landlock; `end_the_first` shows that such signals do nothing

import os

from probe import holds_if, reached

with holds_if(OSError):
    os.kill(1, 0)
    reached("it could be killed")
