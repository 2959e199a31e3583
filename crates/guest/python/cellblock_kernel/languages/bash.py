"""Cells of bash: one interactive shell, because only such a shell goes on after an interrupt."""

import os
import shlex
import subprocess

from cellblock_kernel.cell.failure import CellFailure
from cellblock_kernel.languages.companion import Companion, Show

# Read by the shell first: the prompts are empty, and what it says about its lack of a terminal is not shown.
_BEGIN = "set +o history +H; exec 2>&{stderr} {stderr}>&-\n"
# One line for each cell. Programs that it leaves in the background do not inherit the pipes.
_CELL = (
    "builtin mapfile -d '' -u {code} __cell; "
    'builtin eval -- "${{__cell[0]}}" </dev/null {code}<&- {answers}>&-\n'
    "builtin printf '%s\\n' \"$?\" >&{answers}\n"
)


class Bash(Companion):
    """A shell that keeps variables, functions and the working directory."""

    language, program = "bash", "bash"

    def __init__(self, show: Show) -> None:
        super().__init__(show)
        self._line_of_cell = b""
        self._argv: list[str] = []

    def _start(self) -> "subprocess.Popen[bytes]":
        # Its position is the shell's as well.
        code = self._pipes["code"] = os.memfd_create("cell")
        commands, answers, stderr = self._pipe("commands", True), self._pipe("answers", False), os.dup(2)
        given = (code, answers, stderr)
        try:
            process = subprocess.Popen(
                [self.program, "--noprofile", "--norc", "--noediting", "-i"],
                stdin=commands,
                stderr=subprocess.DEVNULL,
                pass_fds=given,
                start_new_session=True,
                env={**os.environ, "PS1": "", "PS2": ""},
            )
        finally:
            for descriptor in (commands, answers, stderr):
                os.close(descriptor)
        self._argv = []
        self._line_of_cell = _CELL.format(code=code, answers=answers).encode()
        os.write(self._pipes["commands"], _BEGIN.format(stderr=stderr).encode())
        return process

    def _send(self, code: str, name: str, argv: list[str], echo: bool, last: bool) -> None:
        if "\0" in code:
            self._busy = False
            raise CellFailure("SyntaxError", "the code contains a null character")
        file = self._pipes["code"]
        os.ftruncate(file, 0)
        os.pwrite(file, code.encode("utf-8", "surrogateescape"), 0)
        os.lseek(file, 0, os.SEEK_SET)
        # A cell's own `set --` stays for the next one.
        given = b""
        if argv != self._argv:
            self._argv = argv
            given = f"builtin set -- {shlex.join(argv[1:])}\n".encode("utf-8", "surrogateescape")
        line = given + self._line_of_cell
        while line:
            line = line[os.write(self._pipes["commands"], line) :]

    def _answer(self, line: bytes) -> bool:
        status = int(line)
        if status != 0:
            raise CellFailure("ExitStatus", f"the last command ended with status {status}", status=status)
        return True
