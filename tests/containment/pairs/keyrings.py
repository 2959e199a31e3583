"""Two sandboxes do not share keyrings, as neither can use one."""

import ctypes
import os

from calls import libc

OUTSIDE = "sandboxes have no calls for keys at all"
ADD_KEY, KEYCTL = 248, 250
JOIN_SESSION, SEARCH, SESSION_KEYRING = 1, 10, -3


def call(*arguments: object) -> int:
    """Makes a raw system call."""
    result: int = libc.syscall(*(ctypes.c_long(value) if isinstance(value, int) else value for value in arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def leave(token: str) -> object:
    """Adds a key to a keyring of the session."""
    call(KEYCTL, JOIN_SESSION, 0)
    return call(ADD_KEY, ctypes.c_char_p(b"user"), ctypes.c_char_p(token.encode()), ctypes.c_char_p(b"x"), 1, SESSION_KEYRING)


def find(token: str) -> bool:
    """Searches for it."""
    try:
        return call(KEYCTL, SEARCH, SESSION_KEYRING, ctypes.c_char_p(b"user"), ctypes.c_char_p(token.encode()), 0) > 0
    except OSError:
        return False
