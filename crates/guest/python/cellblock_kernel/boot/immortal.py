"""Makes the template's objects immortal, so that its forks do not write to their reference counts.

A kernel that only looks at an object of the template counts a reference, and thereby copies the object's page: a table
and a chart copied megabytes that they did not change. Python itself has immortal objects since 3.12 (PEP 683), such
as `None`: their count has a value that is never changed. The template gives that value to all that it has, and would
keep anyway, because no kernel outlives its room.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import sysconfig
from types import CodeType
from typing import Any

# Later versions keep other things beside the count.
_VERSIONS = ((3, 12), (3, 13))
_COUNT = ctypes.c_uint32
_IMMORTAL = 0xFFFFFFFF
_CODE = ("co_consts", "co_names", "co_filename", "co_name", "co_qualname", "co_linetable", "co_exceptiontable")


def is_possible() -> bool:
    """Returns whether this interpreter has immortal objects of the known kind."""
    known = sys.implementation.name == "cpython" and sys.version_info[:2] in _VERSIONS
    if not known or sys.byteorder != "little" or sys.maxsize < 1 << 32 or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    return all(_COUNT.from_address(id(value)).value == _IMMORTAL for value in (None, True, False, Ellipsis))


def immortalize() -> None:
    """Makes every object immortal that the garbage collector knows, and what these refer to. Objects that the collector
    has frozen are to be unfrozen before. Does nothing with another interpreter."""
    if not is_possible():
        return
    start, end = _heap()
    # Objects in the heap, which are nearly all, are reached faster than by a pointer each.
    counts = memoryview((ctypes.c_char * (end - start)).from_address(start)).cast("B").cast("I")
    at = _COUNT.from_address
    found: list[Any] = gc.get_objects()
    while found:
        fresh: list[Any] = []
        for value in found:
            address = id(value)
            if start <= address < end:
                place = (address - start) >> 2
                if counts[place] == _IMMORTAL:
                    continue
                counts[place] = _IMMORTAL
            else:
                count = at(address)
                if count.value == _IMMORTAL:
                    continue
                count.value = _IMMORTAL
            fresh.append(value)
        # The collector does not know what code refers to.
        found = [getattr(code, part) for code in fresh if type(code) is CodeType for part in _CODE]
        found += gc.get_referents(*fresh)


def _heap() -> tuple[int, int]:
    """Returns where the C library's heap starts and ends; an empty range if there is none."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            if line.rstrip().endswith("[heap]"):
                start, end = line.split()[0].split("-")
                return int(start, 16), int(end, 16)
    return 0, 0
