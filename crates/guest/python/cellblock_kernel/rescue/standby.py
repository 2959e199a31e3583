"""The standby: a copy of the kernel from before a cell, which takes over when the cell kills the kernel.

The kernel makes the copy while it is idle, with `CLONE_PARENT`: the kernel's parent becomes the copy's, so that
`os.wait` and SIGCHLD of cells do not see it, and no hook of a library or a cell runs. It sleeps on the spare
channel, which carries at most one message: `take_over`, with the spare channel of the next standby attached.
"""

from __future__ import annotations

import _socket
import os
import select
import signal
import threading
from collections.abc import Callable
from typing import Any

from cellblock_kernel.cell.channel import Channel, decode, frame
from cellblock_kernel.cell.interrupt import Gate
from cellblock_kernel.cell.stdio import Streams
from cellblock_kernel.rescue import soundness
from cellblock_kernel.rescue.clone import clone
from cellblock_kernel.rescue.idle_memory import IdleMemory

# Messages that change the state.
CHANGES = frozenset({"configure", "setup", "execute", "bind", "reset"})

_MAX_MESSAGE = 4096
# A model thinks for longer; a program that sends cell after cell does not wait for copies that it
# would never use.
_IDLE_MS = 20

_getpid, _exit, _kill, _setsid = os.getpid, os._exit, os.kill, os.setsid
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
        self._pid = 0
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
        obstacle = None if self._spare is None else soundness.thread_obstacle()
        if obstacle is not None:
            self._channel.send({"type": "standby", "changes": self._changes, "pid": None, "refused": obstacle})

    def renew(self) -> None:
        """Notes that a copy has become the kernel, which has no standby yet."""
        self._due = self.policy != "off" and self._touched

    def settle(self) -> None:
        """Makes a standby of the current state, unless there is one: immediately, or with `idle` if no message
        comes for a while.

        Returns a second time in a standby that has taken over. With `idle` it answers first, and is replaced later: the cell
        after a rescue does not wait for a copy.
        """
        while self._due:
            if self.policy == "idle":
                if self._channel.ready(_IDLE_MS):
                    return
                self._memory.trim()
            self._due = self._renew()

    def _renew(self) -> bool:
        """Replaces the standby and reports it to the host; returns true in a standby that has taken over."""
        self._dismiss()
        pid, refused = None, self.obstacle()
        if refused is None:
            # A signal that the kernel has received but not yet handled would also be handled in the
            # copy.
            before = _mask(signal.SIG_BLOCK, _valid())
            try:
                pid = clone()
            except OSError as error:
                refused = f"no copy of the kernel ({error.strerror})"
            if pid == 0:
                self._stand(before)
                return True
            _mask(signal.SIG_SETMASK, before)
        self._pid = pid or 0
        self._channel.send({"type": "standby", "changes": self._changes, "pid": pid, "refused": refused})
        return False

    def _dismiss(self) -> None:
        pid, self._pid = self._pid, 0
        if pid:
            try:
                _kill(pid, signal.SIGKILL)
            except OSError:
                pass

    def obstacle(self, *handed: int) -> str | None:
        """Returns why a copy could not replace the kernel. Notes the positions in open files; `handed` are for the copy."""
        if self._spare is None:
            return "no spare channel"
        try:
            own = {self._identity(number) for number in (1, 2, self._spare, self._channel.fileno(), *handed)}
            obstacle = soundness.thread_obstacle() or soundness.child_obstacle()
            if obstacle is None:
                obstacle, self._places = soundness.descriptor_obstacle(own, self.loop_descriptors())
        except Exception as error:
            return f"an unknown state ({type(error).__name__})"
        return obstacle

    @staticmethod
    def _identity(number: int) -> tuple[int, int]:
        found = _fstat(number)
        return found.st_dev, found.st_ino

    def _stand(self, before: Any) -> None:
        """Waits to take over, as a separate process with all signals blocked. Returns as the kernel, or not at
        all."""
        spare = self._spare
        try:
            _setsid()
            # The host must see the end of the channel when the kernel ends.
            self._channel.release()
            assert spare is not None
            taken = self.await_order(spare, 1)
            if taken is None:
                _exit(0)
            self.take_over(spare, taken[0][0])
            _mask(signal.SIG_SETMASK, before)
        except BaseException:
            _exit(70)

    def release(self) -> None:
        """Closes this process's copy of the spare channel."""
        if self._spare is not None:
            _close(self._spare)

    def moved(self, number: int) -> None:
        """Notes that a descriptor refers to another file, which is at the same position."""
        if number in self._places:
            self._places[number] = (self._identity(number), self._places[number][1])

    @staticmethod
    def await_order(spare: int, count: int, prepare: Callable[[], None] | None = None) -> tuple[list[int], bool | None] | None:
        """Receives `take_over` with this number of descriptors, and its `reseed`; nothing if the host has closed the channel.

        `prepare` is what to do before a move to another sandbox.
        """
        # Another process of the sandbox may have made the shared socket non-blocking.
        wait = select.poll()
        wait.register(spare, select.POLLIN)
        listener = _socket.socket(fileno=spare)
        while True:
            received, handed = b"", list[int]()
            while len(received) < 8 or len(received) < 4 + int.from_bytes(received[:4], "big"):
                wait.poll()
                try:
                    part, ancillary, _, _ = listener.recvmsg(
                        _MAX_MESSAGE, _socket.CMSG_SPACE(4 * count), _socket.MSG_CMSG_CLOEXEC | _socket.MSG_DONTWAIT
                    )
                except BlockingIOError:
                    continue
                if not part:
                    return None
                received += part
                for level, kind, content in ancillary:
                    if (level, kind) == (_socket.SOL_SOCKET, _socket.SCM_RIGHTS):
                        handed += memoryview(content[: len(content) // 4 * 4]).cast("i")
            message = decode(received[8:])
            if message.get("type") != "checkpoint":
                break
            # The host asks whether this process is still there, and with a number whether it is ready to be moved.
            if message["cell"] and prepare is not None:
                prepare()
            listener.sendall(frame({"type": "kept", "cell": message["cell"], "pid": _getpid()}))
        listener.detach()
        if message.get("type") != "take_over" or len(handed) != count:
            return None
        return handed, message.get("reseed")

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
