"""Code cannot start more threads than its limit."""
# covers: SandboxEval, dangerous operations; a thread bomb
# limits: {"processes": 24}
# ends: limit_exceeded processes

import threading

from probe import reached

stop = threading.Event()
for _ in range(60):
    threading.Thread(target=stop.wait, args=(20,), daemon=True).start()
reached("60 threads")
