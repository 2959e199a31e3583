"""The process of another language: runs cells one by one and keeps their state."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from shutil import which
from signal import SIGINT, SIGKILL, Signals
from typing import Any

from cellblock_kernel.cell.failure import CellFailure

# Seconds between looks whether the process lives: a program that it has started may hold its pipes open.
_LOOK = 0.05
# Part of the time that the host gives the kernel after an interrupt in which it must stop.
_STOP = 0.6
_CHUNK = 65536

Show = Callable[[Any], None]


class Ended(Exception):
    """The process ended."""


class Companion(ABC):
    """A process that reads requests and writes answers, each on a pipe of its own."""

    language: str
    # The command that runs it, looked for along PATH.
    program: str

    def __init__(self, show: Show) -> None:
        self._show = show
        self._process: subprocess.Popen[bytes] | None = None
        self._pipes: dict[str, int] = {}
        self._received = b""
        self._busy = False

    @classmethod
    def is_there(cls) -> bool:
        """Whether the image has its program."""
        return which(cls.program) is not None

    @abstractmethod
    def _start(self) -> subprocess.Popen[bytes]:
        """Starts the process."""

    @abstractmethod
    def _send(self, code: str, name: str, argv: list[str], echo: bool, last: bool) -> None:
        """Sends a cell. Its arguments begin with the script's name, if it has any."""

    @abstractmethod
    def _answer(self, line: bytes) -> bool:
        """Handles an answer; returns whether it was the last one. Raises a `CellFailure`."""

    def _stop(self) -> None:
        """Stops the programs that the cell has started, and the cell."""
        assert self._process is not None
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, SIGINT)

    def run(self, code: str, name: str, argv: list[str], echo: bool, last: bool, grace: float) -> None:
        """Runs a cell and shows its values. Raises a `CellFailure`, or `KeyboardInterrupt` if it was interrupted: `grace` seconds
        after that the host ends the kernel."""
        self._prepare()
        self._busy = True
        try:
            self._send(code, name, argv, echo, last)
            self._finish(None)
        except KeyboardInterrupt:
            self._interrupt(grace * _STOP)
            raise
        except (Ended, BrokenPipeError):
            self._fail()

    def close(self) -> None:
        """Ends the process and what it has started."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, SIGKILL)
            self._process.wait()
        for descriptor in self._pipes.values():
            os.close(descriptor)
        self._process, self._pipes, self._received, self._busy = None, {}, b"", False

    def _prepare(self) -> None:
        if self._process is not None:
            if not self._busy and self._process.poll() is None:
                return
            _note(f"{self.language} was started again; what earlier cells had left in it is gone")
        self.close()
        try:
            self._process = self._start()
        except OSError as error:
            self.close()
            raise CellFailure("StartError", f"{self.program} could not be started: {error.strerror}") from error

    def _pipe(self, name: str, writes: bool) -> int:
        """Makes a pipe, keeps one end under the name, and returns the other, which the process inherits."""
        reading, writing = os.pipe()
        self._pipes[name], theirs = (writing, reading) if writes else (reading, writing)
        return theirs

    def _finish(self, seconds: float | None) -> None:
        """Handles answers until the last one."""
        deadline = None if seconds is None else time.monotonic() + seconds
        failure = None
        while self._busy:
            line = self._line(deadline)
            try:
                self._busy = not self._answer(line)
            except CellFailure as error:
                failure, self._busy = error, False
        if failure is not None:
            raise failure

    def _line(self, deadline: float | None) -> bytes:
        answers = self._pipes["answers"]
        while b"\n" not in self._received:
            assert self._process is not None
            ended = self._process.poll() is not None
            wait = 0.0 if ended else _LOOK
            if select.select([answers], [], [], wait)[0]:
                chunk = os.read(answers, _CHUNK)
                if not chunk:
                    raise Ended
                self._received += chunk
            elif ended:
                raise Ended
            elif deadline is not None and time.monotonic() > deadline:
                raise TimeoutError
        line, self._received = self._received.split(b"\n", 1)
        return line

    def _interrupt(self, seconds: float) -> None:
        self._stop()
        try:
            self._finish(seconds)
        except CellFailure:
            pass
        except (TimeoutError, Ended, BrokenPipeError):
            self.close()
            _note(f"{self.language} did not stop and was ended; its variables are gone")

    def _fail(self) -> None:
        """Reports that the process ended during a cell."""
        assert self._process is not None
        status = self._process.wait()
        self.close()
        if status == 0:
            _note(f"the cell ended {self.program}; what it had kept is gone")
            return
        if status > 0:
            message = f"the cell ended {self.program} with status {status}; what it had kept is gone"
        else:
            signal = Signals(-status).name
            cause = ", perhaps because the sandbox ran out of memory" if -status == SIGKILL else ""
            message = f"{self.program} was ended by {signal}{cause}; what it had kept is gone"
        raise CellFailure("ExitStatus", message, status=status if status > 0 else 128 - status)


def _note(text: str) -> None:
    sys.stderr.write(f"note: {text}\n")
