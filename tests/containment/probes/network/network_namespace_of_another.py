"""Code cannot join the network of another process."""
# covers: known failure: setns into the host's namespaces

import os

from probe import holds_if, reached

CLONE_NEWNET = 0x40000000
with holds_if(OSError):
    os.setns(os.open("/proc/1/ns/net", os.O_RDONLY), CLONE_NEWNET)
    reached("the first process' network")
