"""Code cannot get a terminal."""
# covers: kernel surface of container escapes; terminal injection

import os

from probe import holds_if, reached

with holds_if(OSError):
    reached(os.openpty())
