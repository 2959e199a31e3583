"""Two sandboxes do not see each other's locks on files of the image."""

import fcntl
import json

RESIDUE = "the image's files are the same inodes in every sandbox, and locking them needs no right to write"


def leave(token: str) -> object:
    """Locks a module of the standard library."""
    file = open(json.__file__)
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def find(token: str) -> bool:
    """Tries to lock it."""
    with open(json.__file__) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
