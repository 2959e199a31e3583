"""Code cannot make a file for the host's disk."""
# covers: SandboxEval, dangerous operations; device access

import os
import stat

from probe import holds_if, reached

with holds_if(OSError):
    os.mknod("disk", 0o600 | stat.S_IFBLK, os.makedev(7, 0))
    reached("a block device")
