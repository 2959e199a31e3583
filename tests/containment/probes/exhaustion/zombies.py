"""Processes that ended and that nobody asked about count against the limit."""
# covers: SandboxEval, dangerous operations; a zombie flood
# limits: {"processes": 24}
# ends: limit_exceeded processes

import os

from probe import reached

for _ in range(60):
    if os.fork() == 0:
        os._exit(0)
reached("60 zombies")
