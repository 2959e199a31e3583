"""Processes that left their parent count against the limit."""
# covers: SandboxEval, dangerous operations; daemons
# limits: {"processes": 24}
# ends: completed

import os
import time

from probe import held, reached

for started in range(60):
    child = os.fork()
    if child == 0:
        try:
            orphan = os.fork()
        except OSError:
            os._exit(1)
        if orphan == 0:
            os.setsid()
            time.sleep(20)
        os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        held(f"refused after {started}")
reached("60 daemons")
