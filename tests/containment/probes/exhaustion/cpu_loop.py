"""An endless loop is stopped when its time is over."""
# covers: CIRCLE, cpu, direct
# time: 0.7
# ends: interrupted | kernel_lost

import time

from probe import reached

start = time.monotonic()
while time.monotonic() < start + 3:
    pass
reached("three seconds")
