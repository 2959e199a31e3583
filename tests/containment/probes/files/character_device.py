"""Code cannot make a file for the machine's memory."""
# covers: SandboxEval, dangerous operations; device access

import os
import stat

from probe import holds_if, reached

with holds_if(OSError):
    os.mknod("memory", 0o600 | stat.S_IFCHR, os.makedev(1, 1))
    reached("a character device")
