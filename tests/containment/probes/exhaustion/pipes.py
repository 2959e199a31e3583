"""Code cannot open more pipes than its limit."""
# covers: SandboxEval, dangerous operations; resource limits
# limits: {"open_files": 128}
# ends: limit_exceeded open_files

import os

from probe import reached

pipes = [os.pipe() for _ in range(600)]
reached(f"{len(pipes)} pipes")
