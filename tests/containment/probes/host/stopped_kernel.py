"""A kernel that stops itself does not keep its sandbox longer than its time."""
# covers: known failure: guest control channel abuse
# time: 0.7
# ends: kernel_lost
# uncontained: it attacks a host that waits for an answer, and nobody does

import os
import signal

from forge import kernel

os.kill(kernel(), signal.SIGSTOP)
