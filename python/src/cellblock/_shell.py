"""Commands and files of a session, as a program in its sandbox sees them."""

from __future__ import annotations

import base64
import contextlib
import errno
import json
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, cast

from ._errors import CellblockError, ServerError
from ._http import Server
from ._operations import DELETE_FILE, READ_FILE

#: Seconds for which one request waits for an answer of the sandbox.
_WAIT = 50
#: Bytes of input that are part of a request to the sandbox; more is uploaded as a file.
_INLINE = 64 << 10
#: What the server says of a program that ended, by itself or with its sandbox.
_GONE = ("process_not_found", "process_lost", "process_ended", "process_input_closed")
_ENDED = "the program that runs commands in the sandbox ended: code killed it, or the sandbox was lost. The next command starts it again"
#: Characters of a request to the sandbox; a longer one is uploaded as a file.
_REQUEST = 512 << 10
#: Runs the program in the first line of standard input: as an argument, `ps` in the sandbox would show all of it.
_LOADER = "import json, sys; exec(json.loads(sys.stdin.buffer.readline()))  # commands of cellblock.Shell"
_KEEPER = ["python3", "-I", "-u", "-c", _LOADER]
_SPOOL = "tmp/.cellblock-shell"


@dataclass(frozen=True)
class CommandResult:
    """What a command did. A command that fails is a result, too."""

    #: As a shell reports it: 128 + n if signal n ended the command, 127 if there is no such program, 126 if it cannot be run.
    exit_code: int
    stdout: bytes
    #: Empty if it was merged into `stdout`.
    stderr: bytes
    #: Whether the command was killed because its time was over.
    timed_out: bool
    #: Whether there was more output than `max_output`. It is the end that is missing.
    truncated: bool

    @property
    def ok(self) -> bool:
        """Whether the command exited with 0 in time."""
        return self.exit_code == 0 and not self.timed_out


class Shell:
    """Runs commands in a session's sandbox and reads and writes its files, with the rights of the code in it.

    A `Session` has one, `session.shell`. Commands run beside cells and beside each other. A program that a command leaves in the
    background runs on after it. Paths are any of the sandbox; relative ones are below `/workspace`. Errors are those of Python's own
    file functions, such as `FileNotFoundError` and `PermissionError`.
    """

    def __init__(self, server: Server, session: str, *, is_continued: bool = False) -> None:
        self._server = server
        self._session = session
        #: Whether another client may have started the program that runs commands.
        self._is_continued = is_continued
        self._lock = threading.Lock()
        self._keeper: str | None = None
        self._offset = 0

    def run(
        self,
        command: Sequence[str] | str,
        *,
        timeout: float | None = None,
        input: bytes | str | None = None,
        env: Mapping[str, str] | None = None,
        directory: str | None = None,
        merged: bool = False,
        max_output: int = 64 << 20,
    ) -> CommandResult:
        """Runs a command to its end and returns what it did.

        `command` is a program with its arguments, or text for `bash` (for `sh`, in an image without `bash`). After `timeout` seconds,
        the command and the processes of its group are killed. `input` is its standard input, which is empty without it. `env` is added
        to the sandbox's environment. `merged` collects standard error in `stdout`, in the order in which both were written.
        `max_output` is the maximum number of bytes of each stream that are returned.
        """
        started = self.start(command, timeout=timeout, input=input, env=env, directory=directory, merged=merged, max_output=max_output)
        try:
            return started.result()
        except BaseException:
            started.kill()
            raise

    def start(
        self,
        command: Sequence[str] | str,
        *,
        timeout: float | None = None,
        input: bytes | str | None = None,
        env: Mapping[str, str] | None = None,
        directory: str | None = None,
        merged: bool = False,
        max_output: int = 64 << 20,
    ) -> Command:
        """Starts a command. The arguments are those of `run`."""
        if isinstance(command, str):
            script = 'command -v bash >/dev/null && exec bash -c "$1"; exec sh -c "$1"'
            command = ["sh", "-c", script, "sh", command]
        if not command:
            raise ValueError("`command` is empty: name a program")
        if timeout is not None and not timeout > 0:
            raise ValueError(f"invalid timeout `{timeout}`: must be greater than 0 seconds")
        name = secrets.token_hex(8)
        request: dict[str, Any] = {
            "id": name,
            "do": "run",
            "command": [str(part) for part in command],
            "directory": _absolute(directory or "/workspace"),
            "env": dict(env or {}),
            "merged": merged,
            "max_output": max_output,
            "timeout": timeout,
        }
        if input:
            # A file of its own, so that a program that does not read it holds up nothing.
            request["stdin"] = self._upload(name, input.encode() if isinstance(input, str) else input)
        keeper, offset = self._send(request)
        return Command(self, name, keeper, offset, max_output)

    def read(self, path: str, *, max_bytes: int = 256 << 20) -> bytes:
        """Reads a file.

        A file that is larger than `max_bytes` raises `OSError` with `errno.EFBIG`.
        """
        name = secrets.token_hex(8)
        answer = self._ask({"id": name, "do": "read", "path": _absolute(path), "max_bytes": max_bytes}, path)
        if "too_large" in answer:
            raise OSError(errno.EFBIG, f"the file has {answer['too_large']} bytes, more than {max_bytes}", path)
        return self._fetch(answer["content"], max_bytes)

    def write(self, path: str, content: bytes | str) -> None:
        """Writes a file and creates missing folders."""
        if isinstance(content, str):
            content = content.encode()
        name = secrets.token_hex(8)
        request: dict[str, Any] = {"id": name, "do": "write", "path": _absolute(path)}
        if len(content) > _INLINE:
            request["file"] = self._upload(name, content)
        else:
            request["data"] = base64.b64encode(content).decode()
        self._ask(request, path)

    def _ask(self, request: dict[str, Any], path: str) -> dict[str, Any]:
        keeper, offset = self._send(request)
        answer = self._answer(request["id"], keeper, offset)
        _check(answer, path)
        return answer

    def _send(self, request: dict[str, Any]) -> tuple[str, int]:
        """Sends a request, and returns the process that answers it and the offset of its output before it does."""
        data = json.dumps(request) + "\n"
        keeper = self._started()
        try:
            return self._send_to(keeper, data)
        except ServerError as error:
            if error.code not in _GONE:
                raise
            # Commands that ran are gone with it.
            self._forget(keeper)
            return self._send_to(self._started(), data)

    def _send_to(self, keeper: str, data: str) -> tuple[str, int]:
        offset = self._offset
        if len(data) > _REQUEST:
            name = secrets.token_hex(8)
            data = json.dumps({"id": name, "do": "serve", "file": self._upload(name, data.encode())}) + "\n"
        _patiently(lambda: self._server.json("POST", self._path(f"{keeper}/input"), {"data": data}))
        return keeper, offset

    def _started(self) -> str:
        with self._lock:
            if self._keeper is None and self._is_continued:
                self._find()
            if self._keeper is None:
                keeper = str(_patiently(lambda: self._server.json("POST", self._path(), {"command": _KEEPER, "stdin": True}))["id"])
                source = resources.files("cellblock").joinpath("_keeper.py").read_text()
                self._server.json("POST", self._path(f"{keeper}/input"), {"data": json.dumps(source) + "\n"})
                self._keeper, self._offset = keeper, 0
            return self._keeper

    def _forget(self, keeper: str) -> None:
        with self._lock:
            if self._keeper == keeper:
                self._keeper = None

    def _find(self) -> None:
        """Finds the program that another client of the session has started: what a command left behind can be seen only by its commands."""
        self._is_continued = False
        for process in self._server.json("GET", self._path())["data"]:
            if process["state"] == "running" and process["command"] == _KEEPER:
                with self._server.open("GET", self._path(f"{process['id']}/output"), query={"max_bytes": "4"}) as response:
                    self._offset = int(json.loads(response.read())["total"])
                self._keeper = str(process["id"])

    def _answer(self, name: str, keeper: str, offset: int) -> dict[str, Any]:
        """Waits for the answer to a request. What comes from the sandbox is data of its code: nothing of it is trusted."""
        rest = ""
        while True:
            query = {"offset": str(offset), "max_bytes": str(1 << 20), "wait": str(_WAIT)}
            try:
                with self._server.open("GET", self._path(f"{keeper}/output"), query=query) as response:
                    output = json.loads(response.read())
            except ServerError as error:
                if error.code not in _GONE:
                    raise
                self._forget(keeper)
                raise CellblockError(_ENDED) from error
            if output["lost"]:
                again = {"id": secrets.token_hex(8), "do": "again", "target": name}
                self._send_to(keeper, json.dumps(again) + "\n")
                rest = ""
            offset = int(output["next_offset"])
            *lines, rest = (rest + output["text"]).split("\n")
            for line in lines:
                answer = _parse(line)
                if answer is not None and answer.get("id") == name:
                    with self._lock:
                        if self._keeper == keeper:
                            self._offset = max(self._offset, offset - len(rest))
                    return answer
            if output["eof"]:
                self._forget(keeper)
                raise CellblockError(_ENDED)

    def _fetch(self, content: dict[str, Any], max_bytes: int) -> bytes:
        if "data" in content:
            return base64.b64decode(content["data"])[:max_bytes]
        # The sandbox chose the name.
        path = f"{_SPOOL}/{str(content['file']).rpartition('/')[2]}"

        def get() -> bytes:
            with self._server.open("GET", READ_FILE.at(id=self._session, path=path), headers={"Accept": "*/*"}) as response:
                return response.read(max_bytes)

        data = cast(bytes, _patiently(get))
        _patiently(lambda: self._server.call(DELETE_FILE, id=self._session, path=path))
        return data

    def _upload(self, name: str, content: bytes) -> str:
        path = f"{_SPOOL}/{name}.in"

        def put() -> None:
            with self._server.open("PUT", f"/v1/sessions/{self._session}/files/{path}", content) as response:
                response.read()

        _patiently(put)
        return f"/{path}"

    def _path(self, rest: str = "") -> str:
        return f"/v1/sessions/{self._session}/processes" + (f"/{rest}" if rest else "")


class Command:
    """A command that was started."""

    def __init__(self, shell: Shell, name: str, keeper: str, offset: int, max_output: int) -> None:
        self._shell = shell
        self._name = name
        self._keeper = keeper
        self._offset = offset
        self._max_output = max_output

    def result(self) -> CommandResult:
        """Waits for the end of the command and returns what it did."""
        shell = self._shell
        answer = shell._answer(self._name, self._keeper, self._offset)
        _check(answer)
        stdout = answer["stdout"]
        stderr = answer.get("stderr") or {"data": "", "truncated": False}
        return CommandResult(
            exit_code=int(answer["exit_code"]),
            stdout=shell._fetch(stdout, self._max_output),
            stderr=shell._fetch(stderr, self._max_output),
            timed_out=bool(answer["timed_out"]),
            truncated=bool(stdout["truncated"] or stderr["truncated"]),
        )

    def kill(self) -> None:
        """Kills the command with the processes of its group. Does nothing if it has ended, or its session has."""
        kill = {"id": secrets.token_hex(8), "do": "kill", "target": self._name}
        # It may be gone with its sandbox.
        with contextlib.suppress(CellblockError):
            self._shell._send_to(self._keeper, json.dumps(kill) + "\n")


def _absolute(path: str) -> str:
    return path if path.startswith("/") else f"/workspace/{path}"


def _parse(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        # The rest of a line whose beginning was before the offset.
        return None
    return value if isinstance(value, dict) else None


def _check(answer: dict[str, Any], path: str = "") -> None:
    if "error" in answer:
        code = getattr(errno, str(answer["error"]), errno.EIO)
        message = str(answer["message"])
        raise OSError(code, message, path or str(answer.get("path", "")))


def _patiently(request: Any) -> Any:
    """Repeats a request that a busy session rejects, for at most a minute."""
    until = time.monotonic() + 60
    while True:
        try:
            return request()
        except ServerError as error:
            if error.status != 429 or error.retry_after is None or time.monotonic() > until:
                raise
            time.sleep(min(error.retry_after, 1.0))
