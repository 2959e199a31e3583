"""A regular expression that backtracks for ever is stopped when its time is over."""
# covers: CIRCLE, cpu, indirect: checking addresses
# time: 0.5
# ends: interrupted

import re
import time

from probe import reached

start = time.monotonic()
for length in range(20, 40):
    re.match(r"(a+)+$", "a" * length + "b")
    if time.monotonic() > start + 2:
        break
reached(f"{length} letters in {time.monotonic() - start:.1f} s")
