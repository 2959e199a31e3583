"""Prepares the template's heap so that its forks write to few of its pages.

Importing a few hundred libraries leaves thousands of holes throughout the heap. A kernel would put its objects
there, and each page that it writes to becomes a private copy: megabytes for a cell of three lines. So the
template fills the holes once and for all, and keeps free space at the heap's end, where a kernel's objects are
then close together. That space uses small pages. The heap before it uses large pages, which are cheap to fork
and expensive to write to for the first time.
"""

from __future__ import annotations

import ctypes

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
_MADV_HUGEPAGE, _MADV_NOHUGEPAGE, _MADV_COLLAPSE = 14, 15, 25
_PAGE, _LARGE_PAGE = 4096, 2 << 20
# The C library adjusts these to the same values after a program frees one large array; setting any
# of them disables the adjustment.
_MMAP_THRESHOLD, _TRIM_THRESHOLD = 32 << 20, 64 << 20
# Size of the allocations that a kernel can make before its heap has to grow, again in large pages.
_ROOM = 8 << 20
# Holes are filled from large to small; pieces larger than the first size come directly from the
# system.
_SIZES = (*(1 << power for power in range(16, 11, -1)), *range(2048, 1024, -64), *range(1024, 16, -16), 24)
# More pieces of one size than any heap has holes: a limit for an allocator that behaves
# unexpectedly.
_MOST = 200_000


class _Statistics(ctypes.Structure):
    """``struct mallinfo2`` of the GNU C library."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


def settle() -> None:
    """Fills the holes and makes space at the end. Does nothing with another C library, whose allocator behaves
    differently."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2"):
        return
    libc.mallinfo2.restype = _Statistics
    libc.malloc.restype = libc.sbrk.restype = ctypes.c_void_p
    libc.malloc.argtypes, libc.sbrk.argtypes = [ctypes.c_size_t], [ctypes.c_ssize_t]
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    _fill(libc)
    _enlarge(libc)
    # Growing by more than the space left at the end moves the end.
    libc.mallopt(_M_TOP_PAD, _ROOM)
    libc.malloc(libc.mallinfo2().keepcost + _PAGE)
    libc.mallopt(_M_TOP_PAD, 0)
    libc.mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD)
    libc.mallopt(_M_TRIM_THRESHOLD, _TRIM_THRESHOLD)
    end: int = libc.sbrk(0)
    start = (end - libc.mallinfo2().keepcost + _PAGE - 1) // _PAGE * _PAGE
    if start < end:
        libc.madvise(start, end - start, _MADV_NOHUGEPAGE)


def _enlarge(libc: ctypes.CDLL) -> None:
    """Puts the heap into large pages. The C library does so only if it finds them in `/sys`, which a room does
    not have."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        heaps = [line.split()[0].split("-") for line in maps if line.rstrip().endswith("[heap]")]
    for start, end in ((int(start, 16), int(end, 16)) for start, end in heaps):
        first = -(-start // _LARGE_PAGE) * _LARGE_PAGE
        length = end // _LARGE_PAGE * _LARGE_PAGE - first
        if length > 0:
            libc.madvise(first, length, _MADV_HUGEPAGE)
            libc.madvise(first, length, _MADV_COLLAPSE)


def _fill(libc: ctypes.CDLL) -> None:
    """Allocates pieces of each size until one comes from the end of the heap, where there are no holes."""
    end = libc.sbrk(0) - libc.mallinfo2().keepcost
    malloc = libc.malloc
    for size in _SIZES:
        for _ in range(_MOST):
            piece = malloc(size)
            if piece is None or piece >= end:
                break
