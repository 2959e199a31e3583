"""Code cannot end or stop the process that starts everything in its sandbox."""
# covers: known failure: killing the guest's agent
# uncontained: the kernel drops these signals to the first process of any pid namespace, which it is there, too

import os
import time

from probe import held, holds_if

with holds_if(OSError):
    for number in (15, 1, 19, 11, 9):
        os.kill(1, number)
        # TERM, HUP, STOP, SEGV, KILL. The kernel drops them unless they come from outside; where it does not,
        # this process ends with the first one.
        time.sleep(0.1)
held("signals to it are dropped")
