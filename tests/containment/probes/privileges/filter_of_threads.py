"""A thread that code starts runs under the same filter."""
# covers: known failure: a filter for the main thread only

import threading
from pathlib import Path

from probe import held, reached

found: list[str] = []
thread = threading.Thread(target=lambda: found.append(Path("/proc/thread-self/status").read_text()))
thread.start()
thread.join()
if "Seccomp:\t2" in found[0]:
    held("a filter")
reached("a thread without a filter")
