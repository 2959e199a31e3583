"""Code cannot delete a file of the system."""
# covers: SandboxEval, filesystem manipulation; deletion

import os

from probe import holds_if, reached

with holds_if(OSError):
    os.unlink("/etc/nsswitch.conf")
    reached("the file is gone")
