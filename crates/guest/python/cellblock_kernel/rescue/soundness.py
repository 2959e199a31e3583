"""Says whether a copy of this process, made by forking its one thread, could replace it; and if not, why.

A fork copies memory and descriptors, but no other thread, child or lock. Pools that can be stopped and that
restart by themselves (OpenBLAS, OpenMP), and those of databases, are stopped first; anything else that the copy would lack is an
obstacle.
"""

from __future__ import annotations

import ctypes
import os
import resource
import stat
import sys
import time
from typing import Any

from cellblock_kernel.rescue import databases, owners
from cellblock_kernel.rescue.obstacle import Kind, Obstacle, obstacle

_listdir, _fstat, _lseek, _open, _read, _close = os.listdir, os.fstat, os.lseek, os.open, os.read, os.close
_getpid, _sleep = os.getpid, time.sleep
_getrlimit, _setrlimit, _NPROC = resource.getrlimit, resource.setrlimit, resource.RLIMIT_NPROC
_frames = sys._current_frames

# Stopped threads may stay in the list for a moment.
_LOOKS, _PAUSE = 20, 0.0005
_PAUSE_HARD = 2

_libc: Any = ctypes.PyDLL(None, use_errno=True)

Identity = tuple[int, int]


def threads() -> list[str]:
    """Returns the ids of this process's threads."""
    return _listdir("/proc/self/task")


def stop_pools() -> None:
    """Ends the worker threads of OpenBLAS and OpenMP, which start again when they are needed.

    OpenBLAS ends them before any fork. The fork here fails at a process limit of 0, so that it has no other
    effect.
    """
    soft, hard = _getrlimit(_NPROC)
    _setrlimit(_NPROC, (0, hard))
    try:
        child = _libc.fork()
    finally:
        _setrlimit(_NPROC, (soft, hard))
    if child == 0:
        # Limits do not apply to a privileged process. This copy has nothing to do.
        os._exit(0)
    if child > 0:
        os.waitpid(child, 0)
    for library in _openmp():
        library.omp_pause_resource_all(_PAUSE_HARD)


def _openmp() -> list[Any]:
    found: set[str] = set()
    with open("/proc/self/maps") as maps:
        for line in maps:
            if "libgomp" in line or "libomp" in line or "libiomp" in line:
                found.add(line.split(maxsplit=5)[-1].rstrip("\n"))
    libraries = []
    for path in sorted(found):
        try:
            library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
            library.omp_pause_resource_all.argtypes = [ctypes.c_int]
        except (OSError, AttributeError):
            continue
        libraries.append(library)
    return libraries


# Threads that did not stop, and why they forbid a copy.
_stubborn: tuple[frozenset[str], Obstacle] = (frozenset(), {})


def thread_obstacle() -> Obstacle | None:
    """Stops the threads that can be stopped, and returns why the others forbid a copy."""
    global _stubborn
    found = frozenset(threads())
    if len(found) == 1:
        return None
    if len(_frames()) > 1:
        return obstacle("python_threads")
    known, reason = _stubborn
    if known and known <= found:
        return reason
    stop_pools()
    databases.pause()
    for _ in range(_LOOKS):
        found = frozenset(threads())
        if len(found) == 1:
            return None
        _sleep(_PAUSE)
    _stubborn = (found, obstacle("threads", owners=", ".join(owners.owners(threads()))))
    return _stubborn[1]


def child_obstacle() -> Obstacle | None:
    """Returns why child processes forbid a copy: they belong to this process, and end with the cell that is
    killed."""
    try:
        with open(f"/proc/self/task/{_getpid()}/children") as file:
            children = file.read().split()
    except OSError:
        return None
    return obstacle("child_processes") if children else None


def descriptor_obstacle(own: set[Identity], allowed: set[int]) -> tuple[Obstacle | None, dict[int, tuple[Identity, int]]]:
    """Returns why open descriptors forbid a copy; and the position of each open file, which copies share.

    A second holder of a pipe or socket would hide its end from the process that waits for it; a second holder
    of a locked file would keep the lock.
    """
    places: dict[int, tuple[Identity, int]] = {}
    for name in _listdir("/proc/self/fd"):
        number = int(name)
        try:
            found = _fstat(number)
            kind = stat.S_IFMT(found.st_mode)
            identity = (found.st_dev, found.st_ino)
            if kind == stat.S_IFREG:
                places[number] = (identity, _lseek(number, 0, os.SEEK_CUR))
                if _locked(number):
                    return obstacle("locked_file"), places
            elif kind not in (stat.S_IFDIR, stat.S_IFCHR, stat.S_IFLNK) and identity not in own and number not in allowed:
                kinds: dict[int, Kind] = {stat.S_IFIFO: "open_pipe", stat.S_IFSOCK: "open_socket"}
                return obstacle(kinds.get(kind, "open_event_queue")), places
        except OSError:
            continue  # the listing's own descriptor
    return None, places


def _locked(number: int) -> bool:
    descriptor = _open(f"/proc/self/fdinfo/{number}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return b"\nlock:" in _read(descriptor, 4096)
    finally:
        _close(descriptor)
