"""SIGINT: raises KeyboardInterrupt in a running cell, and nothing anywhere else.

The guest sends SIGINT at a deadline. It may come late, twice, or in the middle of a frame; none of these may hit the kernel
itself. The gate is open only while a cell's own code runs, and a shield defers the signal while bytes are on their way.
"""

import os
from signal import SIGINT, default_int_handler, getsignal, signal
from threading import get_ident
from types import FrameType, TracebackType

_getpid = os.getpid


class Gate:
    """Decides whether a SIGINT becomes a KeyboardInterrupt."""

    def __init__(self) -> None:
        self.pid = _getpid()
        self.main = get_ident()
        self.open = False
        self.interrupted = False
        self._shields = 0
        self._pending = False
        self._own = (
            Gate.__enter__.__code__,
            Gate.__exit__.__code__,
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
            return
        if self._shields:
            self._pending = True
            return
        if frame is not None and frame.f_code in self._own:
            return
        self.interrupted = True
        raise KeyboardInterrupt

    def reset(self) -> None:
        """Forgets the interrupts of the cell before."""
        self.interrupted = False
        self._pending = False
        self._shields = 0

    def __enter__(self) -> None:
        self.open = True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.open = False

    def shield(self) -> None:
        """Defers interrupts until `unshield`; threads other than the main one never see them."""
        if get_ident() == self.main:
            self._shields += 1

    def unshield(self) -> None:
        """Ends a `shield`, and raises what came meanwhile."""
        if get_ident() != self.main:
            return
        self._shields -= 1
        if self._pending and not self._shields and self.open:
            self._pending = False
            self.interrupted = True
            raise KeyboardInterrupt
