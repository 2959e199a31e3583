"""Two sandboxes do not see each other's locks on files of their own."""

import fcntl
from pathlib import Path


def leave(token: str) -> object:
    """Locks a file in the temporary folder."""
    file = open(f"/tmp/{token[:4]}", "w")
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def find(token: str) -> bool:
    """Tries to lock it."""
    with Path(f"/tmp/{token[:4]}").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
