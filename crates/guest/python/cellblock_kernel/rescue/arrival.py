"""What a kept copy restores when it wakes up in another sandbox: all that Linux holds for a process beside its memory.

The copy is moved by the keep (`launcher/transfer`), which gives it the memory, the registers and one socket. It runs below the
limits, ids and filters of its new sandbox, whose files are those of the checkpoint already.
"""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import sys
from typing import Any

from cellblock_kernel.cell.channel import frame
from cellblock_kernel.rescue import generators
from cellblock_kernel.rescue.obstacle import Obstacle, obstacle
from cellblock_kernel.rescue.own_rules import room_for_rules

_open, _dup2, _close, _chdir, _umask, _write, _exit = os.open, os.dup2, os.close, os.chdir, os.umask, os.write, os._exit
_fcntl, _DUPFD = fcntl.fcntl, fcntl.F_DUPFD_CLOEXEC
_getrlimit, _setrlimit, _UNLIMITED = resource.getrlimit, resource.setrlimit, resource.RLIM_INFINITY
_getsignal, _signal, _valid = signal.getsignal, signal.signal, signal.valid_signals
_getitimer, _TIMERS = signal.getitimer, (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)

_LIMITS = tuple(sorted(getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")))
# Above every number that a session uses, and below the usual limit.
_ASIDE = 900

# An open file or directory: its path, its flags, and whether programs inherit it.
Opened = tuple[str, int, bool]


class Belongings:
    """What a process has beside its memory, as far as it can be made again."""

    def __init__(self) -> None:
        self.opened: dict[int, Opened] = {}
        self.directory = "/workspace"
        self._umask = 0o022
        self._limits: dict[int, tuple[int, int]] = {}
        self._room_for_rules: int | None = None

    def note(self) -> Obstacle | None:
        """Notes the state of this process; returns what cannot be made again in another sandbox."""
        self._umask = _umask(0)
        _umask(self._umask)
        self._limits = {kind: _getrlimit(kind) for kind in _LIMITS}
        if any(_getitimer(timer) != (0.0, 0.0) for timer in _TIMERS) or _has_posix_timers():
            return obstacle("timer")
        if max(self.opened, default=0) >= _ASIDE:
            return obstacle("high_descriptor", limit=_ASIDE)
        return None

    def prepare(self) -> None:
        """Notes what only the copy can find out."""
        self._room_for_rules = room_for_rules()

    def check(self, channel: int) -> None:
        """Ends this process, and tells the host why, if rules of Landlock were left behind."""
        before = self._room_for_rules
        if before is None or before != room_for_rules():
            refused = obstacle("thread_limit" if before is None else "own_rules")
            _write(channel, frame({"type": "kept", "cell": 0, "refused": refused}))
            _exit(70)

    def unpack(self, handed: list[int]) -> list[int]:
        """Makes it again; returns the new numbers of the channels, which may have had the numbers of files."""
        moved = [_fcntl(number, _DUPFD, _ASIDE + 1) for number in handed]
        for number in handed:
            _close(number)
        for number, (path, flags, inherited) in self.opened.items():
            place(_open(path, flags), number, inherited)
        _chdir(self.directory)
        _umask(self._umask)
        for kind, (soft, _) in self._limits.items():
            hard = _getrlimit(kind)[1]
            if hard != _UNLIMITED:
                soft = hard if soft == _UNLIMITED else min(soft, hard)
            _setrlimit(kind, (soft, hard))
        for number in _valid():
            handler = _getsignal(number)
            if handler is not None and number not in (signal.SIGKILL, signal.SIGSTOP):
                _signal(number, handler)
        if "faulthandler" in sys.modules and sys.modules["faulthandler"].is_enabled():
            sys.modules["faulthandler"].disable()
            sys.modules["faulthandler"].enable(2)
        return moved


def _has_posix_timers() -> bool:
    """Returns whether there are timers of `timer_create`, which only C code makes."""
    try:
        with open("/proc/self/timers") as timers:
            return bool(timers.read(1))
    except FileNotFoundError:
        return False  # Linux was built without the list


def place(opened: int, number: int, inherited: bool) -> None:
    """Gives an open descriptor a number."""
    if opened == number:
        os.set_inheritable(number, inherited)
    else:
        _dup2(opened, number, inherited)
        _close(opened)


def seed(reseed: bool) -> None:
    """Makes random numbers, names and keys different from those of the session that was forked."""
    from cellblock_kernel.boot import after_fork

    steps: list[Any] = [after_fork.rename]
    if reseed:
        steps += [after_fork.seed, generators.reseed]
    for step in steps:
        try:
            step()
        except Exception:
            pass  # a cell has replaced what it calls
