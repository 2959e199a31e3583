"""Code that ignores the interrupt is stopped all the same."""
# covers: CIRCLE, cpu, direct; known failure: a timeout by signal in the same process
# time: 0.5
# ends: kernel_lost

import signal
import time

from probe import reached

signal.signal(signal.SIGINT, signal.SIG_IGN)
start = time.monotonic()
while time.monotonic() < start + 3:
    pass
reached("three seconds")
