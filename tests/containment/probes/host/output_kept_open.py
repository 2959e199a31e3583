"""A process that keeps the output open keeps the cell from nothing."""
# covers: known failure: waiting for the end of a pipe
# ends: completed
# uncontained: it attacks a host that waits for an output's end, and nobody does

import os
import time

if os.fork() == 0:
    os.setsid()
    time.sleep(60)
    os._exit(0)
