"""Code cannot make a network of its own, where it would be root."""
# covers: kernel surface of container escapes

import os

from probe import holds_if, reached

with holds_if(OSError):
    os.unshare(os.CLONE_NEWNET)
    reached("a new network")
