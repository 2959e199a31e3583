"""One operation in C that takes for ever is stopped when its time is over."""
# covers: CIRCLE, cpu, indirect: an exact calculation
# time: 0.5
# ends: kernel_lost

import time

from probe import reached

start = time.monotonic()
total = sum(range(200_000_000))
reached(f"{total} in {time.monotonic() - start:.1f} s")
