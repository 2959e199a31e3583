"""Code cannot signal all processes at once and hit any but its own."""
# covers: SandboxEval, dangerous operations; killing processes
# gvisor: gVisor counts processes that code cannot signal

import os

from probe import holds_if, reached

with holds_if(OSError):
    os.kill(-1, 0)
    reached("there are some")
