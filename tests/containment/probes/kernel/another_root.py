"""Code cannot change its root."""
# covers: SandboxEval, dangerous operations; leaving a chroot

import os

from probe import holds_if, reached

with holds_if(OSError):
    os.chroot(".")
    reached("a root of its own")
