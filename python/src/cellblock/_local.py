"""A Cellblock of this process: started with its first session, ended with its last one or with the process."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sysconfig
import tempfile
import threading
from pathlib import Path

from ._errors import CellblockError
from ._http import Server

#: Waits for the end of its stdin, which comes with the end of this process however it ends, and then ends the server. Only the server has
#: the stdout, whose end says that it could not start.
_WATCH = 'trap "" INT; "$@" </dev/null & server=$!; exec >&-; read -r _; kill "$server" 2>/dev/null; wait "$server"'
_START_SECONDS = 120.0


def executable() -> str:
    """Returns the program: `CELLBLOCK_EXECUTABLE`, the one that was installed with this package, or the one on PATH."""
    named = os.environ.get("CELLBLOCK_EXECUTABLE")
    if named:
        return named
    beside = Path(sysconfig.get_path("scripts")) / "cellblock"
    found = str(beside) if beside.is_file() else shutil.which("cellblock")
    if not found:
        raise CellblockError(
            "find the program `cellblock`: it is neither installed with this package nor on PATH; "
            "`pip install cellblock`, or set CELLBLOCK_EXECUTABLE to its path, or use `Session(url=…)`"
        )
    return found


class Local:
    """A server on loopback, with a state folder that only this user can read and a key that only this process has."""

    def __init__(self, image: str | None) -> None:
        self._folder = tempfile.mkdtemp(prefix="cellblock-")
        self._process: subprocess.Popen[str] | None = None
        try:
            self.server = self._start(image)
        except BaseException:
            self.close()
            raise

    def _start(self, image: str | None) -> Server:
        program = executable()
        config = Path(self._folder) / "cellblock.yaml"
        settings: dict[str, object] = {"listen": "127.0.0.1:0", "state": f"{self._folder}/state"}
        # Whoever runs this process operates the server as well.
        settings["limits"] = {"max_network": "loopback"}
        if image is not None:
            settings["image"] = image
        # JSON is YAML.
        config.write_text(json.dumps(settings))
        # Settings of a server that this user operates are not those of this one, whose state and address are its own.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CELLBLOCK_SERVE__")}
        key = self._output([program, "key", "create", "python", "--config", str(config)], environment)
        errors = Path(self._folder) / "stderr"
        with errors.open("w") as stderr:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _WATCH, "sh", program, "serve", "--no-model", "--warm", "--config", str(config), "--grace", "1"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment,
                text=True,
                # Ctrl-C is for this process, which ends the server if it does not go on.
                start_new_session=True,
            )
        assert self._process.stdout is not None
        timer = threading.Timer(_START_SECONDS, self._stop)
        timer.start()
        try:
            line = self._process.stdout.readline()
        finally:
            timer.cancel()
        prefix = "listening on "
        if not line.startswith(prefix):
            self._stop()
            raise CellblockError(f"start `{program} serve`: {errors.read_text().strip() or 'it ended at once'}")
        return Server(line.removeprefix(prefix).strip(), key)

    def _output(self, command: list[str], environment: dict[str, str]) -> str:
        try:
            done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment)
        except OSError as error:
            raise CellblockError(f"start `{command[0]}`: {error}") from error
        if done.returncode != 0:
            raise CellblockError(f"`{' '.join(command[:3])}` exited with {done.returncode}: {done.stderr.strip()}")
        return done.stdout.strip()

    def _stop(self) -> None:
        if self._process is None or self._process.stdin is None:
            return
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        """Ends the server and removes its state."""
        self._stop()
        if self._process is not None and self._process.stdout is not None:
            self._process.stdout.close()
        self._process = None
        shutil.rmtree(self._folder, ignore_errors=True)


_lock = threading.Lock()
_servers: dict[tuple[str | None, int], tuple[Local, int]] = {}


def acquire(image: str | None) -> Server:
    """Returns the server for an image, which all sessions of this process share."""
    # A forked child must not end its parent's server.
    slot = (image, os.getpid())
    with _lock:
        local, users = _servers.get(slot) or (Local(image), 0)
        _servers[slot] = (local, users + 1)
        return local.server


def release(image: str | None) -> None:
    """Gives a server back. The last one to do so ends it."""
    slot = (image, os.getpid())
    with _lock:
        local, users = _servers.pop(slot, (None, 0))
        if local is None:
            return
        if users > 1:
            _servers[slot] = (local, users - 1)
            return
    local.close()


@atexit.register
def _end_all() -> None:
    with _lock:
        own = [slot for slot in _servers if slot[1] == os.getpid()]
        ended = [_servers.pop(slot)[0] for slot in own]
    for local in ended:
        local.close()
