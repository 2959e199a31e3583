"""Code that catches the interrupt is stopped all the same."""
# covers: CIRCLE, cpu, direct; known failure: a timeout by exception
# time: 0.5
# ends: kernel_lost | interrupted

import time

from probe import reached

start = time.monotonic()
while time.monotonic() < start + 3:
    try:
        while time.monotonic() < start + 3:
            pass
    except BaseException:
        continue
reached("three seconds")
