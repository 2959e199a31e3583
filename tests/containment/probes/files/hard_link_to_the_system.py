"""Code cannot keep a system file under a name of its own."""
# covers: SandboxEval, filesystem manipulation; links

import os

from probe import holds_if, reached

with holds_if(OSError):
    os.link("/etc/passwd", "/etc/passwd.link")
    reached("a hard link")
