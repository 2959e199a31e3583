"""A flood of calls of a connector, each with a large answer, does not fill the host's memory."""
# covers: known failure: guest control channel abuse
# time: 6
# ends: completed | interrupted | kernel_lost | limit_exceeded memory
# uncontained: it calls the host through the kernel's channel, which plain Python has not

import sys
import threading
import time

if "cellblock_kernel" not in sys.modules:
    raise SystemExit("plain Python has no host to call")

from __main__ import repeating
from forge import frame, send


def fetch(start):
    """Calls on and on."""
    # Each is another call, so that none is answered from memory.
    for number in range(start, start + 100_000):
        repeating.large(n=number)


for number in range(8):
    threading.Thread(target=fetch, args=(number * 100_000,), daemon=True).start()
time.sleep(2)
# Then without reading the answers.
params = {"connector": "repeating", "function": "large"}
for number in range(2_000):
    send(frame({"type": "call", "call": 10_000 + number, "method": "fetch", "params": params | {"arguments": {"n": -number}}}))
time.sleep(1)
