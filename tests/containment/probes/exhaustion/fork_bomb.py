"""Code cannot start more processes than its limit."""
# covers: SandboxEval, dangerous operations; a fork bomb
# limits: {"processes": 48}
# ends: limit_exceeded processes

import os
import time

from probe import reached

for _ in range(150):
    if os.fork() == 0:
        time.sleep(20)
        os._exit(0)
reached("150 processes")
