"""Two sandboxes do not share a limit on processes, which one of them could use up."""

import os
import threading

kept = []


def leave(token: str) -> object:
    """Starts threads until there may be no more, but for the process that looks."""
    stop = threading.Event()
    try:
        while True:
            thread = threading.Thread(target=stop.wait, args=(60,), daemon=True)
            thread.start()
            kept.append(thread)
    except RuntimeError:
        return len(kept)


def find(token: str) -> bool:
    """Says whether no process can be started."""
    try:
        child = os.fork()
    except BlockingIOError:
        return True
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return False
