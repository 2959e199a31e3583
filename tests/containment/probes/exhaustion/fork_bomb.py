"""Code cannot start more processes than its limit."""
# covers: SandboxEval, dangerous operations; a fork bomb
# limits: {"processes": 24}
# ends: limit_exceeded processes

import os
import time

from probe import reached

for _ in range(60):
    if os.fork() == 0:
        time.sleep(20)
        os._exit(0)
reached("60 processes")
