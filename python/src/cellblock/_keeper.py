"""Runs commands and serves files inside a sandbox, for `cellblock.Shell`.

The client sends this file's text to a process in a sandbox. It reads one JSON request a line from standard input, and answers each with
a line of JSON. Commands are its children, so what they leave running lives as long as it does: a process
of a session ends everything that it started, and commands of an agent often start servers.

Only the standard library of the sandbox's Python is used here, and nothing of this package.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from typing import Any, BinaryIO

SPOOL = "/tmp/.cellblock-shell"
#: Bytes that are part of an answer; more is left in a file for the client to fetch.
INLINE = 4096
#: Answers that can be requested again, in case the client missed them.
KEPT = 256

_lock = threading.Lock()
_running: dict[str, subprocess.Popen[bytes]] = {}
#: Commands to kill as soon as they have started.
_doomed: set[str] = set()
_answers: dict[str, bytes] = {}


def _spooled(name: str, part: str) -> str:
    return f"{SPOOL}/{name}.{part}"


def _content(file: BinaryIO, path: str, max_bytes: int) -> dict[str, Any]:
    """Describes what a spooled file holds, and removes it unless the client has to fetch it."""
    size = os.fstat(file.fileno()).st_size
    if size > INLINE:
        return {"file": path, "bytes": size, "truncated": size > max_bytes}
    file.seek(0)
    data = file.read(min(size, max_bytes))
    os.unlink(path)
    return {"data": base64.b64encode(data).decode(), "bytes": size, "truncated": size > max_bytes}


def _kill(process: subprocess.Popen[bytes]) -> None:
    # Its process group: a program that left it for a session of its own is meant to stay.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def run(name: str, request: dict[str, Any]) -> dict[str, Any]:
    """Runs a command until it ends, or until its time is over."""
    environment = {**os.environ, **request.get("env", {})}
    command: list[str] = request["command"]
    directory: str = request["directory"]
    max_bytes: int = request["max_output"]
    merged: bool = request["merged"]
    outcome: dict[str, Any] = {"timed_out": False}
    stdin_path = request.get("stdin")
    with contextlib.ExitStack() as files:
        out = files.enter_context(open(_spooled(name, "out"), "w+b"))
        err = None if merged else files.enter_context(open(_spooled(name, "err"), "w+b"))
        stdin = files.enter_context(open(stdin_path or os.devnull, "rb"))
        if stdin_path:
            os.unlink(stdin_path)
        try:
            process = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=out,
                stderr=subprocess.STDOUT if err is None else err,
                cwd=directory,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            if error.filename == directory:
                for part in ("out", "err"):
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(_spooled(name, part))
                raise
            # As a shell reports it.
            (out if err is None else err).write(f"{command[0]}: {error.strerror}\n".encode())
            outcome["exit_code"] = 127 if error.errno in (errno.ENOENT, errno.ENOTDIR) else 126
        else:
            with _lock:
                _running[name] = process
                is_doomed = name in _doomed
            if is_doomed:
                _kill(process)
            timer: threading.Timer | None = None
            if request.get("timeout") is not None:

                def expire() -> None:
                    outcome["timed_out"] = True
                    _kill(process)

                timer = threading.Timer(request["timeout"], expire)
                timer.daemon = True
                timer.start()
            code = process.wait()
            if timer is not None:
                timer.cancel()
            with _lock:
                _running.pop(name, None)
                _doomed.discard(name)
            outcome["exit_code"] = code if code >= 0 else 128 - code
            outcome["signal"] = -code if code < 0 else None
        out.flush()
        outcome["stdout"] = _content(out, _spooled(name, "out"), max_bytes)
        if err is not None:
            err.flush()
            outcome["stderr"] = _content(err, _spooled(name, "err"), max_bytes)
    return outcome


def kill(name: str, request: dict[str, Any]) -> dict[str, Any]:
    """Ends a command with its process group."""
    target: str = request["target"]
    with _lock:
        process = _running.get(target)
        if process is None and target not in _answers:
            _doomed.add(target)
    if process is not None:
        _kill(process)
    return {}


def read(name: str, request: dict[str, Any]) -> dict[str, Any]:
    """Reads a regular file."""
    # Without waiting for the writer of a FIFO.
    descriptor = os.open(request["path"], os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as source:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        max_bytes: int = request["max_bytes"]
        if status.st_size > max_bytes:
            return {"too_large": status.st_size}
        path = _spooled(name, "file")
        with open(path, "w+b") as copy:
            shutil.copyfileobj(source, copy)
            copy.flush()
            return {"content": _content(copy, path, max_bytes)}


def write(name: str, request: dict[str, Any]) -> dict[str, Any]:
    """Writes a file and creates the folders above it."""
    path: str = request["path"]
    try:
        os.makedirs(os.path.dirname(path) or "/", exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from error
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    with open(descriptor, "wb") as target:
        if "data" in request:
            target.write(base64.b64decode(request["data"]))
        else:
            with open(request["file"], "rb") as source:
                shutil.copyfileobj(source, target)
            os.unlink(request["file"])
    return {}


def again(name: str, request: dict[str, Any]) -> dict[str, Any]:
    """Repeats an answer."""
    with _lock:
        line = _answers.get(request["target"])
    if line is not None:
        _say(line)
    return {}


def serve(name: str, request: dict[str, Any]) -> dict[str, Any]:
    """Serves a request that is in a file, because it is too long for a line."""
    with open(request["file"], "rb") as file:
        inner = json.load(file)
    os.unlink(request["file"])
    _serve(inner)
    return {}


SERVED = {"serve": serve, "run": run, "kill": kill, "read": read, "write": write, "again": again}


def _say(line: bytes) -> None:
    # One write, so that lines of several threads do not mix.
    with _lock:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()


def _serve(request: dict[str, Any]) -> None:
    name: str = request["id"]
    answer: dict[str, Any]
    try:
        answer = SERVED[request["do"]](name, request)
    except OSError as error:
        code = errno.errorcode.get(error.errno or errno.EIO, "EIO")
        answer = {"error": code, "message": error.strerror or str(error), "path": str(error.filename or "")}
    except Exception as error:
        answer = {"error": "EINVAL", "message": f"{type(error).__name__}: {error}"}
    line = json.dumps({"id": name, **answer}).encode() + b"\n"
    with _lock:
        _answers[name] = line
        while len(_answers) > KEPT:
            del _answers[next(iter(_answers))]
    _say(line)


def main() -> None:
    """Serves requests until standard input ends."""
    os.makedirs(SPOOL, mode=0o700, exist_ok=True)
    for line in sys.stdin.buffer:
        threading.Thread(target=_serve, args=(json.loads(line),), daemon=True).start()


if __name__ == "__main__":
    main()
