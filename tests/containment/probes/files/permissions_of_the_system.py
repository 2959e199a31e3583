"""Code cannot change the permissions of a system file."""
# covers: SandboxEval, filesystem manipulation; permissions

import os

from probe import holds_if, reached

with holds_if(OSError):
    os.chmod("/etc/passwd", 0o666)
    reached("writable for all")
