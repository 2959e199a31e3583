"""Returns freed memory of an idle kernel to the system, before its standby shares it.

The C library keeps what a program frees for its next allocation. A model that thinks about a result lets the kernel wait
for seconds, and a table or a chart leaves megabytes behind.
"""

import ctypes
import resource
from typing import Any

_getrusage, _SELF = resource.getrusage, resource.RUSAGE_SELF
# Pages that a kernel has touched since the last time, from which on looking for free ones is worth it: 1 MiB.
_PAGES = 256
# Stays at the heap's end, where the template has prepared it for kernels (`boot/heap.py`).
_ROOM = 8 << 20

_libc: Any = ctypes.PyDLL(None)
# Only the GNU C library has it.
_trim: Any = getattr(_libc, "malloc_trim", None)
if _trim is not None:
    _trim.argtypes = [ctypes.c_size_t]


class IdleMemory:
    """Remembers how many pages the kernel had touched when it was last trimmed."""

    def __init__(self) -> None:
        self._touched = _getrusage(_SELF).ru_minflt

    def trim(self) -> None:
        """Returns free pages, unless there can be only few."""
        if _trim is None or _getrusage(_SELF).ru_minflt - self._touched < _PAGES:
            return
        _trim(_ROOM)
        self._touched = _getrusage(_SELF).ru_minflt
