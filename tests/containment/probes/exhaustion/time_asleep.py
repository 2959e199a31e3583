"""Code that sleeps does not keep its sandbox longer than its time."""
# covers: CIRCLE, cpu, indirect: waiting for a result
# time: 0.5
# ends: interrupted

import time

from probe import reached

time.sleep(3)
reached("three seconds")
