"""The standby: a copy of the kernel from before a cell, which takes over when the cell kills the kernel.

The kernel makes the copy while it is idle, with `CLONE_PARENT`: the kernel's parent becomes the copy's, so that
`os.wait` and SIGCHLD of cells do not see it, and no hook of a library or a cell runs. It sleeps on the spare
channel, which carries at most one message: `take_over`, with the spare channel of the next standby attached.
A checkpoint of the same state needs no further copy: the kernel gives its standby away, over a socket of the two.
"""

from __future__ import annotations

import _socket
import os
import select
import signal
import sys
import threading
from typing import Any

from cellblock_kernel.cell.channel import Channel, frame
from cellblock_kernel.cell.interrupt import Gate
from cellblock_kernel.cell.stdio import Streams
from cellblock_kernel.rescue import order, soundness
from cellblock_kernel.rescue.clone import clone
from cellblock_kernel.rescue.idle_memory import IdleMemory
from cellblock_kernel.rescue.obstacle import Obstacle, no_copy, obstacle, unknown_state

# Messages that change the state.
CHANGES = frozenset({"configure", "setup", "execute", "bind", "reset"})

# A model thinks for longer; a program that sends cell after cell does not wait for copies that it
# would never use.
IDLE_MS = 20
# Standbys are a quarter of the memory of many sessions that rest.
_REST_MS = 60_000

_exit, _kill, _setsid = os._exit, os.kill, os.setsid
_close, _lseek, _fstat, _set_blocking = os.close, os.lseek, os.fstat, os.set_blocking
_mask, _valid = signal.pthread_sigmask, signal.valid_signals


class Standby:
    """Makes a new standby after each change of the state."""

    def __init__(self, channel: Channel, gate: Gate, streams: Streams, spare: int | None, hello: Any) -> None:
        self._channel = channel
        self._gate = gate
        self._streams = streams
        self._spare = spare
        if spare is not None:
            os.set_inheritable(spare, False)
        self._hello = hello
        self.policy = "off"
        self._due = False
        self.loop_descriptors: Any = set
        self.reopen_loop: Any = bool
        self.is_asked: Any = bool
        self._pid = 0
        # To the standby of this very state.
        self.link: _socket.socket | None = None
        self.keep: Any = bool
        # What else is worth to be found out while the kernel is idle.
        self.look_ahead: Any = bool
        self._changes = 0
        self._touched = False
        self._places: dict[int, Any] = {}
        self._memory = IdleMemory()

    def changed(self, kind: str, last: bool = False) -> None:
        """Records that a message was answered; after the last one no standby is needed."""
        if kind not in CHANGES:
            return
        self._changes += 1
        # Before its first cell, a kernel is the same as any new one.
        self._touched = self._touched or kind == "execute"
        self._due = self.policy != "off" and self._touched and not last
        if kind in ("bind", "setup") and not self._touched and self.policy != "off":
            self._tell_of_threads()

    def _tell_of_threads(self) -> None:
        """Reports threads that an input or setup code left behind at once, so that they are not attributed to the first cell."""
        found = None if self._spare is None else soundness.thread_obstacle()
        if found is not None:
            self._report(None, found)

    def renew(self) -> None:
        """Notes that a copy has become the kernel, which has no standby yet."""
        self._due = self.policy != "off" and self._touched

    def settle(self) -> bool:
        """Makes a standby of the current state, unless there is one: immediately, or with `idle` if no message
        comes for a while.

        Returns true in a copy that has become the kernel, which then has to settle, too. With `idle` it answers
        first, and is replaced later: the cell after a rescue does not wait for a copy.
        """
        if self._due:
            if self.policy == "idle":
                if self._channel.ready(IDLE_MS):
                    return False
                self._memory.trim()
            self._due = False
            if self._renew():
                return True
        return self._rest()

    def _rest(self) -> bool:
        """Ends the standby of a kernel that rests; the next message waits for another."""
        if self.policy != "idle" or not self._pid or self.is_asked() or self._channel.ready(_REST_MS):
            return False
        self._dismiss()
        self._report(None, None)
        self._channel.wait()
        return self._renew()

    def _renew(self) -> bool:
        """Replaces the standby and reports it to the host; returns true in a copy that has become the kernel."""
        self._dismiss()
        pid, refused = None, self.obstacle()
        if refused is None:
            # A signal that the kernel has received but not yet handled would also be handled in the
            # copy.
            before = _mask(signal.SIG_BLOCK, _valid())
            try:
                self.link, link = _socket.socketpair()
                pid = clone()
            except OSError as error:
                self.part()
                refused = no_copy(error)
            if pid == 0:
                self.part()
                self._stand(link)
                _mask(signal.SIG_SETMASK, before)
                return True
            link.close()
            _mask(signal.SIG_SETMASK, before)
        self._pid = pid or 0
        self._report(pid, refused)
        if pid and not self._channel.ready(0):
            self.look_ahead()
        return False

    def _report(self, pid: int | None, refused: Obstacle | None) -> None:
        self._channel.send({"type": "standby", "changes": self._changes, "pid": pid, "refused": refused})

    def part(self) -> None:
        """Closes the socket to the standby, which is not of this very state any more."""
        link, self.link = self.link, None
        if link is not None:
            link.close()

    def give(self, message: Any, socket: int) -> int:
        """Gives the standby away if it is of this very state, as a copy that waits on a socket; returns its pid, or 0."""
        pid, link = self._pid, self.link
        if not pid or link is None:
            return 0
        content = frame(message)
        try:
            sent = link.sendmsg([content], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, socket.to_bytes(4, sys.byteorder))])
        except OSError:
            sent = 0  # a cell has killed it
        self.part()
        if sent < len(content):
            return 0
        self._pid = 0
        self.renew()
        return pid

    def _dismiss(self) -> None:
        self.part()
        pid, self._pid = self._pid, 0
        if pid:
            try:
                _kill(pid, signal.SIGKILL)
            except OSError:
                pass

    def obstacle(self, *handed: int) -> Obstacle | None:
        """Returns why a copy could not replace the kernel. Notes the positions in open files; `handed` are for the copy."""
        if self._spare is None:
            return obstacle("no_spare_channel")
        try:
            linked = () if self.link is None else (self.link.fileno(),)
            own = {self._identity(number) for number in (1, 2, self._spare, self._channel.fileno(), *linked, *handed)}
            found = soundness.thread_obstacle() or soundness.child_obstacle()
            if found is None:
                found, self._places = soundness.descriptor_obstacle(own, self.loop_descriptors())
        except Exception as error:
            return unknown_state(error)
        return found

    @staticmethod
    def _identity(number: int) -> tuple[int, int]:
        found = _fstat(number)
        return found.st_dev, found.st_ino

    def _stand(self, link: _socket.socket) -> None:
        """Waits to take over, as a separate process with all signals blocked. Returns as the kernel, or not at
        all."""
        spare = self._spare
        try:
            _setsid()
            # The host must see the end of the channel when the kernel ends.
            self._channel.release()
            assert spare is not None
            given = self._await_gift(spare, link)
            link.close()
            if given is not None:
                self.keep(*given)
                return
            taken = order.await_order(spare, 1)
            if taken is None:
                _exit(0)
            self.take_over(spare, taken[0][0])
            self.renew()
        except BaseException:
            _exit(70)

    @staticmethod
    def _await_gift(spare: int, link: _socket.socket) -> tuple[Any, int] | None:
        """Waits until the kernel gives this process away, and returns with what; or returns nothing once the host has an order."""
        wait = select.poll()
        wait.register(spare, select.POLLIN)
        wait.register(link.fileno(), select.POLLIN)
        while True:
            ready = [number for number, _ in wait.poll()]
            if link.fileno() not in ready:
                return None
            # First: a process that was given away leaves the order to the next standby.
            received = order.receive(link, 1)
            if received is not None and len(received[1]) == 1:
                return received[0], received[1][0]
            wait.unregister(link.fileno())

    def release(self) -> None:
        """Closes this process's copy of the spare channel."""
        if self._spare is not None:
            _close(self._spare)

    def moved(self, number: int) -> None:
        """Notes that a descriptor refers to another file, which is at the same position."""
        if number in self._places:
            self._places[number] = (self._identity(number), self._places[number][1])

    def take_over(self, channel: int, spare: int) -> None:
        """Goes on as the kernel over these channels."""
        for number, (identity, place) in self._places.items():
            try:
                if self._identity(number) == identity:
                    _lseek(number, place, os.SEEK_SET)
            except OSError:
                pass  # the killed cell may have shortened or removed a file
        for number in (1, 2, channel):
            _set_blocking(number, True)
        threading.main_thread()._set_native_id()  # type: ignore[attr-defined]
        self._spare = spare
        self._gate.take_over()
        self._channel.move(channel)
        self._streams.repair()
        self._pid = 0
        self._hello()
