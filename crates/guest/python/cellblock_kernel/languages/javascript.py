"""Cells of JavaScript, run by Node.js."""

import json
import os
import subprocess
from base64 import b64decode
from typing import Any

from cellblock_kernel.cell.failure import CellFailure
from cellblock_kernel.cell.pattern import pattern
from cellblock_kernel.languages.companion import Companion
from cellblock_kernel.outputs.rich import Bundle

_UNUSUAL = pattern(r"[^A-Za-z0-9_.-]+")
_DRIVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "driver.js")


class _Text:
    """A value that is not JSON, as Node.js writes it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


class JavaScript(Companion):
    """A process of Node.js that keeps what cells declare."""

    language, program = "javascript", "node"
    _done = _stopping = False

    def _start(self) -> "subprocess.Popen[bytes]":
        given = [
            self._pipe(name, writes) for name, writes in (("requests", True), ("answers", False), ("seen", True), ("stops", True))
        ]
        # An interrupt may leave the bookkeeping of asynchronous hooks incomplete; Node.js would abort.
        command = [self.program, "--no-force-async-hooks-checks", _DRIVER, *map(str, given)]
        try:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=given, start_new_session=True)
        finally:
            for descriptor in given:
                os.close(descriptor)

    def _send(self, code: str, name: str, argv: list[str], echo: bool, last: bool) -> None:
        self._done = self._stopping = False
        # The driver looks for it in stacks.
        file = _UNUSUAL.sub("-", name.strip("<>")) or "cell"
        request = json.dumps({"code": code, "name": file, "argv": argv, "echo": echo, "last": last}).encode() + b"\n"
        while request:
            request = request[os.write(self._pipes["requests"], request) :]

    def _answer(self, line: bytes) -> bool:
        answer = json.loads(line)
        if "stopped" in answer:
            self._stopping = False
        elif "show" in answer:
            try:
                self._show(_value(answer["show"]))
            finally:
                os.write(self._pipes["seen"], b"\n")
        else:
            self._done = True
            error = answer["done"].get("error")
            if error is not None and not self._stopping:
                raise CellFailure(error["type"], error["message"], error["stack"] + "\n", error["line"])
        # A stop that has not been noticed yet would stop the next cell.
        return self._done and not self._stopping

    def _stop(self) -> None:
        self._stopping = True
        os.write(self._pipes["stops"], b"\n")
        super()._stop()


def _value(shown: dict[str, Any]) -> Any:
    if "json" in shown:
        return json.loads(shown["json"])
    if "mime" in shown:
        return Bundle({shown["mime"]: b64decode(shown["base64"])})
    return _Text(shown["text"])
