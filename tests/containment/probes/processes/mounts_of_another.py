"""Code cannot join the file tree of another process."""
# covers: known failure: setns into the host's namespaces

import os

from probe import holds_if, reached

with holds_if(OSError):
    os.setns(os.open("/proc/1/ns/mnt", os.O_RDONLY), os.CLONE_NEWNS)
    reached("the first process' tree")
