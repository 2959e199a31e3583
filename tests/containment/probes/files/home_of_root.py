"""Code cannot list the home of root."""
# covers: SandboxEval, information exposure; keys and histories

import os

from probe import holds_if, reached

with holds_if(OSError):
    reached(os.listdir("/root"))
