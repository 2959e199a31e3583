"""A flood of calls to the host does not fill its memory."""
# covers: known failure: guest control channel abuse
# time: 3
# ends: completed | interrupted | kernel_lost | broken protocol
# uncontained: it attacks the host through the kernel's channel, which plain Python has not

import threading
import time

from forge import frame, send

call = frame({"type": "call", "call": 1, "method": "x" * 10_000, "params": None})
# The host answers each, and nobody here reads: both sides' buffers fill.
flood = threading.Thread(target=lambda: [send(call) for _ in range(20_000)], daemon=True)
flood.start()
time.sleep(1)
