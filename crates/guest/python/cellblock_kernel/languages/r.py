"""Cells of R."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from urllib.parse import unquote

from cellblock_kernel.cell.failure import CellFailure
from cellblock_kernel.cell.pattern import pattern
from cellblock_kernel.languages.companion import Companion, Show
from cellblock_kernel.outputs.rich import Bundle

_UNUSUAL = pattern(r"[^A-Za-z0-9_.-]+")
_DRIVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "driver.R")
# Links of Debian's R.
_CONFIGURATION = Path("/usr/lib/R/etc")
_OPTIONS = ["--no-save", "--no-restore", "--no-init-file", "--quiet", "--no-echo"]


class R(Companion):
    """A process of R that keeps what cells bind."""

    language, program = "r", "R"

    def __init__(self, show: Show) -> None:
        super().__init__(show)
        self._failure: CellFailure | None = None

    @classmethod
    def is_there(cls) -> bool:
        """Debian's R has its configuration elsewhere, which the host's does not bring along."""
        return super().is_there() and all(link.exists() for link in _CONFIGURATION.glob("*"))

    def _start(self) -> subprocess.Popen[bytes]:
        code = self._pipes["code"] = os.memfd_create("cell")
        pipes = [self._pipe(name, writes) for name, writes in (("requests", True), ("answers", False), ("seen", True))]
        given = [*pipes, code]
        command = [self.program, *_OPTIONS, f"--file={_DRIVER}", "--args", *map(str, given)]
        try:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=given, start_new_session=True)
        finally:
            for descriptor in pipes:
                os.close(descriptor)

    def _send(self, code: str, name: str, argv: list[str], echo: bool, last: bool) -> None:
        self._failure = None
        if len(argv) > 1:
            self._busy = False
            raise CellFailure("ArgumentError", "cells of R cannot be given arguments; assign them in the code")
        file = self._pipes["code"]
        os.ftruncate(file, 0)
        os.pwrite(file, code.encode("utf-8", "surrogateescape"), 0)
        # The driver names it in messages.
        name = _UNUSUAL.sub("-", name.strip("<>")) or "cell"
        os.write(self._pipes["requests"], f"{int(echo)} {name}\n".encode())

    def _answer(self, line: bytes) -> bool:
        kind, *fields = (unquote(field) for field in line.decode().split("\t"))
        if kind == "picture":
            try:
                self._show(Bundle({"image/png": Path(fields[0]).read_bytes()}))
            finally:
                os.write(self._pipes["seen"], b"\n")
            return False
        if kind == "error":
            type_, message, number, call, calls = fields
            where = f" in {call}" if call else ""
            self._failure = CellFailure(
                "Error" if type_ == "simpleError" else type_,
                message.rstrip("\n"),
                f"Error{where}: {message.rstrip()}\n" + (f"Calls:\n{calls}\n" if calls else ""),
                int(number),
            )
            return False
        if self._failure is not None:
            raise self._failure
        return True
