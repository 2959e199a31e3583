"""Checkpoints: copies of the idle kernel that are kept, and from which the session can go on any number of times.

A kept copy waits on a socket of its own, which came with the message `checkpoint`. For each `take_over` that arrives there, with a
channel and a spare channel attached, it makes another copy, which becomes the kernel. Files are the guest's part: it restores them
before the copy is asked. A copy that was moved to another sandbox meanwhile becomes the kernel there itself.
"""

from __future__ import annotations

import fcntl
import os
import signal
import stat
from typing import Any

from cellblock_kernel.cell.channel import Channel
from cellblock_kernel.rescue.arrival import Belongings, Opened, seed
from cellblock_kernel.rescue.clone import clone
from cellblock_kernel.rescue.standby import Standby

_setsid, _exit, _close, _open, _dup2 = os.setsid, os._exit, os.close, os.open, os.dup2
_stat, _fstat, _readlink, _listdir, _chdir, _getcwd = os.stat, os.fstat, os.readlink, os.listdir, os.chdir, os.getcwd
_fcntl, _F_GETFL, _F_GETFD, _CLOEXEC = fcntl.fcntl, fcntl.F_GETFL, fcntl.F_GETFD, fcntl.FD_CLOEXEC
_mask, _valid = signal.pthread_sigmask, signal.valid_signals

_SHM = "/dev/shm"
# The trees whose files a rollback restores, and the one in `/tmp` that it leaves alone.
_RESTORED, _DATA = ("/workspace", "/tmp"), "/tmp/data"
_MADE = os.O_CREAT | os.O_EXCL | os.O_TRUNC


class Checkpoints:
    """Keeps copies of the kernel."""

    def __init__(self, channel: Channel, standby: Standby) -> None:
        self._channel = channel
        self._standby = standby
        self._opened: dict[int, Opened] = {}
        self._belongings = Belongings()

    def keep(self, cell: int) -> None:
        """Keeps a copy and reports it, or why it cannot be kept. Returns once more in each copy that becomes the kernel."""
        handed = self._channel.handed()
        pid, size, bound, socket = None, 0, None, handed[0] if handed else 0
        refused = self._standby.obstacle(handed[0]) or self._obstacle() if len(handed) == 1 else "a missing descriptor"
        if refused is None:
            size = _page_tables()
            bound = self._bound()
            # As for a standby.
            before = _mask(signal.SIG_BLOCK, _valid())
            try:
                pid = clone()
            except OSError as error:
                refused = f"no copy of the kernel ({error.strerror})"
            if pid == 0:
                self._wait(handed[0], before)
                return
            _mask(signal.SIG_SETMASK, before)
        for descriptor in handed:
            _close(descriptor)
        self._channel.send(
            {"type": "kept", "cell": cell, "pid": pid, "refused": refused, "bytes": size, "socket": socket, "bound": bound}
        )

    def _obstacle(self) -> str | None:
        """Returns what a rollback could not bring back, in addition to what a standby cannot. Notes the open files."""
        try:
            return _mapping_obstacle() or self._file_obstacle()
        except Exception as error:
            return f"an unknown state ({type(error).__name__})"

    def _file_obstacle(self) -> str | None:
        if _listdir(_SHM):
            return f"a file in {_SHM}"
        belongings = self._belongings
        belongings.directory = _getcwd()
        belongings.opened.clear()
        self._opened.clear()
        for name in _listdir("/proc/self/fd"):
            number = int(name)
            try:
                found = _fstat(number)
                path = _readlink(f"/proc/self/fd/{name}")
            except OSError:
                continue  # the listing's own descriptor
            is_file = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
            if not (is_file or (stat.S_ISCHR(found.st_mode) and number > 2)):
                continue
            if not found.st_nlink:
                return "an open file that was removed"
            inherited = not _fcntl(number, _F_GETFD) & _CLOEXEC
            opened = (path, _fcntl(number, _F_GETFL) & ~_MADE, inherited)
            belongings.opened[number] = opened
            if is_file and _is_below(path, _RESTORED) and not _is_below(path, (_DATA,)):
                self._opened[number] = opened
        return None

    def _bound(self) -> str | None:
        """Returns what a move to another sandbox could not take along."""
        try:
            return self._belongings.note()
        except Exception as error:
            return f"an unknown state ({type(error).__name__})"

    def _wait(self, descriptor: int, before: Any) -> None:
        """Makes a kernel for each message, as a separate process. Returns in these kernels only."""
        try:
            _setsid()
            # The host must see the ends of these channels when the kernel and its standby end.
            self._channel.release()
            self._standby.release()
            while True:
                order = self._standby.await_order(descriptor, 2, self._belongings.prepare)
                if order is None:
                    _exit(0)
                taken, reseed = order
                if reseed is not None:
                    self._arrive(descriptor, taken, reseed)
                    _mask(signal.SIG_SETMASK, before)
                    return
                if clone() == 0:
                    _setsid()
                    _close(descriptor)
                    self._reopen()
                    self._standby.take_over(taken[0], taken[1])
                    self._standby.renew()
                    _mask(signal.SIG_SETMASK, before)
                    return
                for each in taken:
                    _close(each)
        except BaseException:
            _exit(70)

    def _arrive(self, descriptor: int, taken: list[int], reseed: bool) -> None:
        """Becomes the kernel of another sandbox."""
        _close(descriptor)
        self._belongings.check()
        channel, spare = self._belongings.unpack(taken)
        for number in self._belongings.opened:
            self._standby.moved(number)
        self._standby.reopen_loop()
        seed(reseed)
        self._standby.take_over(channel, spare)
        self._standby.renew()

    def _reopen(self) -> None:
        """Opens files again that were replaced meanwhile: the restored ones have the same names but may be others."""
        for number, (path, flags, inherited) in self._opened.items():
            own, there = _fstat(number), _stat(path)
            if (own.st_dev, own.st_ino) != (there.st_dev, there.st_ino):
                opened = _open(path, flags)
                _dup2(opened, number, inherited)
                _close(opened)
                self._standby.moved(number)
        _chdir(self._belongings.directory)


def _is_below(path: str, roots: tuple[str, ...]) -> bool:
    return any(path == root or path.startswith(root + "/") for root in roots)


def _mapping_obstacle() -> str | None:
    """Returns a mapping that would show the changes of other kernels, or of a restored file."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            parts = line.rstrip("\n").split(maxsplit=5)
            path = parts[5] if len(parts) > 5 else ""
            if _is_below(path, (*_RESTORED, _SHM)) and not _is_below(path, (_DATA,)):
                return "a mapped file"
            if parts[1][1] == "w" and parts[1][3] == "s":
                return "shared memory"
    return None


def _page_tables() -> int:
    """Returns the size of the page tables, which each copy has of its own."""
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmPTE:"):
                return int(line.split()[1]) * 1024
    return 0
