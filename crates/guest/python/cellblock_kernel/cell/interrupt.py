"""SIGINT: raises KeyboardInterrupt in the cell that it is meant for, and nowhere else.

The host sends SIGINT to stop a cell. The signal may arrive before the kernel has read the cell, twice, in the
middle of a frame, or after the cell's end. It must never interrupt the kernel itself, and must stop the cell in
all cases but the last. So a signal is

- raised where a cell's own code runs: the gate is open;
- kept while bytes are being sent or received (a shield), or the kernel is busy with a message, and raised
afterward;
- also kept while nothing runs but an unread message has arrived, because the host sent that before the signal;
- forgotten once the cell has ended.

A signal for a cell that has just ended is seen before the next message is read. The host sends a no-op message
after each cell that it interrupted, so that such a signal never stops another cell.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from signal import SIGINT, default_int_handler, getsignal, signal
from threading import get_ident
from types import FrameType, TracebackType

_getpid = os.getpid


def _nothing() -> int:
    return 0


class Gate:
    """Decides whether a SIGINT becomes a KeyboardInterrupt."""

    def __init__(self) -> None:
        self.pid = _getpid()
        self.main = get_ident()
        self.open = False
        self.interrupted = False
        # Whether a message is being read or answered.
        self.busy = False
        # Returns the number of received message bytes that were not read.
        self.unread: Callable[[], int] = _nothing
        self._shields = 0
        self._pending = False
        # Code in which raising would leave the gate itself half changed. Each part checks for
        # pending signals after its last call.
        self._own = (
            Gate.__enter__.__code__,
            Gate.__exit__.__code__,
            Gate.heed.__code__,
            Gate.shield.__code__,
            Gate.unshield.__code__,
        )
        self._handler = self._on_signal

    def install(self) -> None:
        """Takes SIGINT back if a cell has changed its handler."""
        if getsignal(SIGINT) is not self._handler:
            signal(SIGINT, self._handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if _getpid() != self.pid:
            default_int_handler(number, frame)
        if not self.open:
            if self.busy or self.unread():
                self._pending = True
            return
        if self._shields or (frame is not None and frame.f_code in self._own):
            self._pending = True
            return
        self.interrupted = True
        raise KeyboardInterrupt

    def begin(self) -> None:
        """Starts to answer a message: a pending signal is meant for it."""
        self.interrupted = False
        self._shields = 0

    def end(self) -> None:
        """Ends the answer: a signal that arrives before the next message is meant for the past one."""
        self.busy = False
        self._pending = False

    def take_over(self) -> None:
        """Continues as another process, which no signal was meant for."""
        self.pid = _getpid()
        self.end()

    def __enter__(self) -> None:
        self.open = True

    def heed(self) -> None:
        """Raises a signal that arrived while the gate was closed. Called right after opening it, which cannot
        raise itself."""
        if self._pending:
            self._pending = False
            self.interrupted = True
            raise KeyboardInterrupt

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.open = False

    def shield(self) -> None:
        """Defers interrupts until `unshield`; threads other than the main one never see them."""
        if get_ident() == self.main:
            self._shields += 1

    def unshield(self) -> None:
        """Ends a `shield` and raises a signal that arrived meanwhile."""
        if get_ident() != self.main:
            return
        self._shields -= 1
        if self._pending and not self._shields and self.open:
            self._pending = False
            self.interrupted = True
            raise KeyboardInterrupt
