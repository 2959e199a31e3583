"""Two sandboxes do not share System V semaphores."""

from calls import CREATE, MODE, key, libc


def leave(token: str) -> object:
    """Makes one with that key."""
    made = libc.semget(key(token), 1, CREATE | MODE)
    assert made >= 0, "semget"
    return made


def find(token: str) -> bool:
    """Looks for it."""
    return libc.semget(key(token), 1, 0) >= 0
