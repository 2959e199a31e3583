"""Two sandboxes do not share a limit on timers, which one of them could use up."""

import ctypes

from calls import libc

ENOUGH = 200_000
TIMER_CREATE, TIMER_DELETE, MONOTONIC = 222, 226, 1
identity = ctypes.c_int()


def leave(token: str) -> object:
    """Makes timers until there may be no more."""
    made = 0
    while made < ENOUGH and libc.syscall(TIMER_CREATE, MONOTONIC, None, ctypes.byref(identity)) == 0:
        made += 1
    return made


def find(token: str) -> bool:
    """Says whether no timer can be made."""
    if libc.syscall(TIMER_CREATE, MONOTONIC, None, ctypes.byref(identity)):
        return True
    libc.syscall(TIMER_DELETE, identity)
    return False
