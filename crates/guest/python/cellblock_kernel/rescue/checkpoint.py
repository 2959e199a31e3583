"""Checkpoints: copies of the idle kernel that are kept, and from which the session can go on any number of times.

A kept copy waits on a socket of its own, which came with the message `checkpoint`. It is the standby, if that has the
same state. When `take_over` arrives, with a channel and a spare channel attached, the copy becomes the kernel itself, and
puts another one in its place before it does anything else: the answer need not wait for that. Files are the guest's part:
it restores them before the copy is asked. A copy that was moved to another sandbox meanwhile becomes the kernel there.
"""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import stat
from typing import Any

from cellblock_kernel.cell.channel import Channel
from cellblock_kernel.rescue.arrival import Belongings, Opened, seed
from cellblock_kernel.rescue.clone import clone
from cellblock_kernel.rescue.obstacle import Obstacle, no_copy, obstacle, unknown_state
from cellblock_kernel.rescue.order import await_order
from cellblock_kernel.rescue.standby import IDLE_MS, Standby

_setsid, _exit, _close, _open, _dup2 = os.setsid, os._exit, os.close, os.open, os.dup2
_stat, _fstat, _readlink, _listdir, _chdir, _getcwd = os.stat, os.fstat, os.readlink, os.listdir, os.chdir, os.getcwd
_fsdecode = os.fsdecode
_fcntl, _F_GETFL, _F_GETFD, _CLOEXEC = fcntl.fcntl, fcntl.F_GETFL, fcntl.F_GETFD, fcntl.FD_CLOEXEC
_mask, _valid = signal.pthread_sigmask, signal.valid_signals

_SHM = "/dev/shm"
# The trees whose files a rollback restores, and the one in `/tmp` that it leaves alone.
_RESTORED, _DATA = ("/workspace", "/tmp"), "/tmp/data"
_RESTORED_MAPPING = re.compile(f" ((?:{'|'.join((*_RESTORED, _SHM))})(?:/.*)?)$".encode(), re.MULTILINE)
_SHARED = (b" rw-s ", b" rwxs ", b" -w-s ", b" -wxs ")
_MADE = os.O_CREAT | os.O_EXCL | os.O_TRUNC


class Checkpoints:
    """Keeps copies of the kernel."""

    def __init__(self, channel: Channel, standby: Standby) -> None:
        self._channel = channel
        self._standby = standby
        # The socket of the copy that this kernel was.
        self._left: int | None = None
        self._opened: dict[int, Opened] = {}
        self._belongings = Belongings()
        # What forbids a checkpoint among the mappings of the very state of a standby.
        self._seen: tuple[Any, Obstacle | None] = (None, None)
        standby.keep = self._given

    def keep(self, cell: int) -> None:
        """Keeps a copy and reports it, or why it cannot be kept. Returns once more in each copy that becomes the kernel."""
        handed = self._channel.handed()
        pid, size, bound, socket = None, 0, None, handed[0] if handed else 0
        refused = obstacle("missing_descriptor") if len(handed) != 1 else self._standby.obstacle(socket) or self._obstacle()
        if refused is None:
            size = _page_tables()
            bound = self._bound()
            try:
                pid = (0 if bound else self._give(socket)) or self._copy(socket)
            except OSError as error:
                refused = no_copy(error)
            if pid == 0:
                return
        for descriptor in handed:
            _close(descriptor)
        self._channel.send({"type": "kept", "cell": cell, "pid": pid, "refused": refused, "bytes": size, "bound": bound})
        self._standby.look_ahead = self._look_ahead

    def settle(self) -> None:
        """Puts a copy in the place of the kept one that has become this kernel: when no message comes for a while, or before the
        first that comes. Returns once more in each copy that becomes the kernel."""
        while self._left is not None:
            self._channel.ready(IDLE_MS)
            socket, self._left = self._left, None
            try:
                if not _is_closed(socket) and self._copy(socket, announce=True) == 0:
                    continue
            except OSError:
                pass  # the host finds the socket closed, and the checkpoint gone
            _close(socket)

    def _give(self, socket: int) -> int:
        """Makes the standby the copy that waits on a socket; returns its pid, or 0 if there is none of this very state."""
        belongings = self._belongings
        opened = [[number, *opened, number in self._opened] for number, opened in belongings.opened.items()]
        return self._standby.give({"directory": belongings.directory, "opened": opened}, socket)

    def _given(self, message: Any, socket: int) -> None:
        """Is such a copy. Returns as the kernel, or not at all."""
        belongings = self._belongings
        # Names as the kernel found them: a cell may have changed them since.
        belongings.directory = message["directory"]
        belongings.opened = {number: (path, flags, inherited) for number, path, flags, inherited, _ in message["opened"]}
        self._opened = {number: belongings.opened[number] for number, *_, restored in message["opened"] if restored}
        self._bound()
        self._stay(socket)

    def _copy(self, socket: int, announce: bool = False) -> int:
        """Makes a copy that waits on a socket, and tells the host of itself if it has to. Returns its pid, and 0 in each copy that
        becomes the kernel."""
        # As for a standby.
        before = _mask(signal.SIG_BLOCK, _valid())
        try:
            pid = clone()
            if pid == 0:
                self._wait(socket, announce)
        finally:
            _mask(signal.SIG_SETMASK, before)
        return pid

    def _look_ahead(self) -> None:
        """Looks at the mappings while the kernel is idle: that takes a third of the time of a checkpoint."""
        try:
            self._seen = (self._standby.link, _mapping_obstacle())
        except Exception:
            pass  # the checkpoint tries again, and says what it is

    def _obstacle(self) -> Obstacle | None:
        """Returns what a rollback could not bring back, in addition to what a standby cannot. Notes the open files."""
        try:
            link, seen = self._seen
            mapped = seen if link is not None and link is self._standby.link else _mapping_obstacle()
            return mapped or self._file_obstacle()
        except Exception as error:
            return unknown_state(error)

    def _file_obstacle(self) -> Obstacle | None:
        if _listdir(_SHM):
            return obstacle("shared_file")
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
                return obstacle("removed_file")
            inherited = not _fcntl(number, _F_GETFD) & _CLOEXEC
            opened = (path, _fcntl(number, _F_GETFL) & ~_MADE, inherited)
            belongings.opened[number] = opened
            if is_file and _is_below(path, _RESTORED) and not _is_below(path, (_DATA,)):
                self._opened[number] = opened
        return None

    def _bound(self) -> Obstacle | None:
        """Returns what a move to another sandbox could not take along."""
        try:
            return self._belongings.note()
        except Exception as error:
            return unknown_state(error)

    def _wait(self, socket: int, announce: bool) -> None:
        """Waits to become the kernel, as a separate process. Returns as the kernel, or not at all."""
        try:
            _setsid()
            # The host must see the end of the channel when the kernel ends.
            self._channel.release()
            self._stay(socket, announce)
        except BaseException:
            _exit(70)

    def _stay(self, socket: int, announce: bool = False) -> None:
        # A session that has kept one checkpoint will keep more.
        self._standby.look_ahead = self._look_ahead
        # Nor may this process take an order to the standby.
        self._standby.release()
        order = await_order(socket, 2, self._belongings.prepare, announce)
        if order is None:
            _exit(0)
        taken, reseed = order
        if reseed is None:
            self._left = socket
            self._reopen()
            self._standby.take_over(taken[0], taken[1])
        else:
            self._arrive(socket, taken, reseed)
        self._standby.renew()

    def _arrive(self, descriptor: int, taken: list[int], reseed: bool) -> None:
        """Becomes the kernel of another sandbox."""
        _close(descriptor)
        self._belongings.check(taken[0])
        channel, spare = self._belongings.unpack(taken)
        for number in self._belongings.opened:
            self._standby.moved(number)
        self._standby.reopen_loop()
        seed(reseed)
        self._standby.take_over(channel, spare)

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


def _is_closed(socket: int) -> bool:
    """Returns whether nobody has the other end of a socket."""
    look = select.poll()
    look.register(socket, 0)
    return bool(look.poll(0))


def _mapping_obstacle() -> Obstacle | None:
    """Returns a mapping that would show the changes of other kernels, or of a restored file."""
    with open("/proc/self/maps", "rb") as maps:
        mappings = maps.read()
    # A kernel has a thousand mappings: a look at each would take as long as all else.
    for path in _RESTORED_MAPPING.findall(mappings):
        if not _is_below(_fsdecode(path), (_DATA,)):
            return obstacle("mapped_file")
    return obstacle("shared_memory") if any(shared in mappings for shared in _SHARED) else None


def _page_tables() -> int:
    """Returns the size of the page tables, which each copy has of its own."""
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmPTE:"):
                return int(line.split()[1]) * 1024
    return 0
