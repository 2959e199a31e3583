"""Standard streams of cells: line-buffered text over descriptors 1 and 2, repaired after each cell."""

from __future__ import annotations

import io
import os
import sys
import time
from contextlib import suppress
from fcntl import F_DUPFD_CLOEXEC, fcntl, ioctl
from termios import FIONREAD
from typing import Any, TextIO

try:
    from ctypes import CDLL

    _fflush: Any = CDLL(None).fflush
except (
    ImportError,
    OSError,
    AttributeError,
):  # an interpreter without ctypes only loses buffered output of C code
    _fflush = None

# First pause in seconds between checks of the pipes, doubled each time, and the longest one.
_PAUSE, _LONGEST = 0.00005, 0.025
# How long a check lasts in seconds while others write to the pipes, and while nothing is read from them.
_SHARED, _UNREAD = 0.05, 1.0

_dup2 = os.dup2
_sleep = time.sleep
_ioctl = ioctl
_fstat = os.fstat
_TextIOWrapper = io.TextIOWrapper
_BufferedWriter = io.BufferedWriter
_FileIO = io.FileIO


def _unread(fd: int) -> int:
    """Returns the number of unread bytes in a pipe; 0 for anything else."""
    try:
        return int.from_bytes(_ioctl(fd, FIONREAD, b"\0\0\0\0"), sys.byteorder)
    except OSError:
        return 0


def _writer(fd: int) -> TextIO:
    file: Any = _FileIO(fd, "w", closefd=False)
    file.name = "<stdout>" if fd == 1 else "<stderr>"
    raw = _BufferedWriter(file)
    # Lines are written at once, so that a crash does not lose a cell's earlier output.
    # As Python in the sandbox's locale: bytes of file names are printed unchanged, and other half pairs are an error.
    errors = "surrogateescape" if fd == 1 else "backslashreplace"
    return _TextIOWrapper(raw, encoding="utf-8", errors=errors, line_buffering=True)


class Streams:
    """Owns sys.stdout and sys.stderr."""

    def __init__(self) -> None:
        self._saved = {fd: fcntl(fd, F_DUPFD_CLOEXEC, 3) for fd in (1, 2)}
        self._identity = {fd: self._stat(fd) for fd in (1, 2)}
        self.out = _writer(1)
        self.err = _writer(2)
        module: Any = sys
        module.stdout = module.__stdout__ = self.out
        module.stderr = module.__stderr__ = self.err
        module.stdin = module.__stdin__ = open(0, closefd=False, encoding="utf-8", errors="replace")  # noqa: SIM115
        module.stdin.buffer.raw.name = "<stdin>"

    def release(self) -> None:
        """Closes the copies of the descriptors that a cell has not closed."""
        for fd in self._saved.values():
            with suppress(OSError):
                os.close(fd)

    @staticmethod
    def _stat(fd: int) -> tuple[int, int] | None:
        try:
            stat = _fstat(fd)
        except OSError:
            return None
        return stat.st_dev, stat.st_ino

    def flush(self) -> None:
        """Flushes the buffers of Python and C code."""
        for stream in (_current("stdout"), _current("stderr"), self.out, self.err):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):
                pass  # closed or replaced by the cell: `repair` restores it
            except Exception:
                pass  # a cell's own stream object may raise anything
        if _fflush is not None:
            _fflush(None)

    def settle(self) -> None:
        """Flushes, and waits until the host has read the pipes, so that a following output comes after their
        content.

        The wait is limited: longer for a reader that does not run, as on a busy host, than for pipes that other
        processes keep filling.
        """
        self.flush()
        pause, waited, before = _PAUSE, 0.0, 0
        while unread := _unread(1) + _unread(2):
            if waited > (_UNREAD if unread == before else _SHARED):
                return
            before = unread
            _sleep(pause)
            waited += pause
            pause = min(2 * pause, _LONGEST)

    def repair(self) -> None:
        """Restores what a cell broke: closed descriptors, closed or missing stream objects."""
        for fd, identity in self._identity.items():
            if self._stat(fd) != identity:
                _dup2(self._saved[fd], fd)
        if self.out.closed:
            self.out = _writer(1)
        if self.err.closed:
            self.err = _writer(2)
        if _unusable(_current("stdout")):
            sys.stdout = self.out
        if _unusable(_current("stderr")):
            sys.stderr = self.err


def _current(name: str) -> Any:
    return getattr(sys, name, None)


def _unusable(stream: Any) -> bool:
    try:
        return stream is None or not callable(stream.write) or bool(stream.closed)
    except AttributeError:
        return not hasattr(stream, "write")
    except Exception:
        return True
