"""Code cannot start more threads than its limit."""
# covers: SandboxEval, dangerous operations; a thread bomb
# limits: {"processes": 48}
# ends: limit_exceeded processes

import threading

from probe import reached

stop = threading.Event()
for _ in range(150):
    threading.Thread(target=stop.wait, args=(20,), daemon=True).start()
reached("150 threads")
