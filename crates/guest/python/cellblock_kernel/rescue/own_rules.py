"""Detects Landlock rules that code has put on its own kernel: another process would not have them.

Linux does not say which rules a process has. It says when a process has as many sets of them as are possible, so counting how many
more can be added shows whether two processes have equally many. Rules belong to a thread, and are those of one that ends.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import time

from cellblock_kernel.rescue.soundness import threads

# The same on all machines.
_CREATE, _RESTRICT = 444, 446
# Device files, which nobody can make in a sandbox.
_MAKE_BLOCK = 1 << 11
# More than Linux allows, which is 16.
_MOST = 64
_PAUSE = 0.0001

_close, _sleep = os.close, time.sleep
_start, _lock = _thread.start_new_thread, _thread.allocate_lock
_libc = ctypes.PyDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long
_syscall.argtypes = [ctypes.c_long] * 4


def room_for_rules() -> int | None:
    """Returns how many more sets of rules this process may add; nothing if that is unknown. Takes a thread for a moment."""
    counted: list[int] = []
    done = _lock()
    done.acquire()

    def count() -> None:
        try:
            counted.append(_add_rules())
        finally:
            done.release()

    try:
        _start(count, ())
    except RuntimeError:
        return None  # there are as many processes as the sandbox may have
    done.acquire()
    while len(threads()) > 1:
        _sleep(_PAUSE)
    return counted[0] if counted else None


def _add_rules() -> int:
    """Adds sets of rules to this thread until that fails, and returns how many."""
    handled = ctypes.c_uint64(_MAKE_BLOCK)
    rules = _syscall(_CREATE, ctypes.addressof(handled), ctypes.sizeof(handled), 0)
    if rules < 0:
        return 0  # Linux without Landlock
    added = 0
    while added < _MOST and _syscall(_RESTRICT, rules, 0, 0) == 0:
        added += 1
    _close(rules)
    return added
