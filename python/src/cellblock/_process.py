"""Programs that run beside the cells of a session."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator, Mapping, Sequence

from . import _operations as api
from . import types
from ._handle import Handle, given
from ._terminal import Terminal

#: Seconds that one request waits for output or for an end.
_WAIT = 50.0


class Process(Handle):
    """A program of a session. It runs until it ends, or until the session is reset or ends.

    Its output is one sequence of bytes of stdout and stderr. The server keeps the first 16 MiB and the last 256 KiB.
    """

    def __init__(self, session: Handle, data: types.Process) -> None:
        self._session = session
        self._server = session._server
        #: Its ID in the session, such as `p1`.
        self.id = data["id"]
        #: The program and its arguments.
        self.command = data["command"]
        self._offset = 0
        self._ended = False

    def __repr__(self) -> str:
        return f"Process({self.id!r}, {self.command!r})"

    def status(self) -> types.Process:
        """Returns its state: `running`, `exited` with `exit_code`, `killed` by `signal`, or `lost` with its sandbox."""
        return self._session._call(api.WAIT_PROCESS, {"timeout": 0}, process=self.id)

    def output(self, offset: int = 0, *, max_bytes: int | None = None, wait: float | None = None) -> types.ProcessOutput:
        """Returns output from an offset in bytes: `text`, and `next_offset` to continue from.

        `max_bytes` is at most 1 MiB. `wait` is the seconds to wait for output, at most 60.
        """
        query = {"offset": offset, "max_bytes": max_bytes, "wait": wait}
        return self._session._call(api.READ_PROCESS_OUTPUT, query=query, process=self.id)

    def read(self, wait: float = _WAIT) -> str:
        """Returns the output since the last `read`. It is empty if there was none within `wait` seconds, or if all of it was read."""
        if self._ended:
            return ""
        output = self.output(self._offset, wait=wait)
        self._offset, self._ended = output["next_offset"], output["eof"]
        return output["text"]

    def __iter__(self) -> Iterator[str]:
        """Yields the output as it is written, to the end of the program."""
        while not self._ended:
            text = self.read()
            if text:
                yield text

    def send(self, data: str | bytes, *, close: bool = False) -> None:
        """Sends input, at most 1 MiB, to a process with `stdin` or a terminal. `close` closes its standard input afterward."""
        request: dict[str, object] = {"data": data, "close": close}
        if isinstance(data, bytes):
            request |= {"data": base64.b64encode(data).decode(), "encoding": "base64"}
        self._session._call(api.SEND_PROCESS_INPUT, request, process=self.id)

    def signal(self, name: str = "SIGTERM") -> None:
        """Sends a signal, by its name."""
        self._session._call(api.SIGNAL_PROCESS, {"signal": name}, process=self.id)

    def wait(self, timeout: float | None = None) -> types.Process:
        """Waits for the end, at most `timeout` seconds, and returns the state, which is `running` if time was over."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            rest = _WAIT if until is None else max(0.0, min(_WAIT, until - time.monotonic()))
            status = self._session._call(api.WAIT_PROCESS, {"timeout": rest}, process=self.id)
            if status["state"] != "running" or (until is not None and time.monotonic() >= until):
                return status

    def terminal(self, *, offset: int = 0) -> Terminal:
        """Connects to the terminal of a process that was started with one. Output begins at `offset`."""
        path = api.OPEN_PROCESS_TERMINAL.at(id=self._session._open_id(), process=self.id)
        return Terminal(self._server, f"{path}?offset={offset}")


class Programs(Handle):
    """Operations on a session's programs."""

    def start_process(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        directory: str | None = None,
        stdin: bool = False,
        terminal: tuple[int, int] | None = None,
    ) -> Process:
        """Starts a program with its arguments, which no shell reads.

        `env` is added to the sandbox's environment, `directory` is `/workspace` without one, `stdin` keeps standard input open for
        `Process.send`, and `terminal` gives it a terminal of so many rows and columns. To run a command to its end, use `shell.run`.
        """
        size = None if terminal is None else {"rows": terminal[0], "columns": terminal[1]}
        request = given(command=list(command), env=dict(env) if env else None, directory=directory, stdin=stdin, terminal=size)
        return Process(self, self._call(api.START_PROCESS, request))

    def processes(self) -> list[Process]:
        """Lists the programs that run, and the last 64 that have ended."""
        return [Process(self, it) for it in self._call(api.LIST_PROCESSES)]

    def ports(self) -> list[types.Port]:
        """Lists the ports on which programs of the sandbox listen, if visits from outside are allowed."""
        return self._call(api.LIST_PORTS)

    def link(self, port: int, *, valid: int | None = None) -> types.PortLink:
        """Makes a link to a port that opens without a key. `valid` is in seconds, 3600 by default."""
        return self._call(api.CREATE_PORT_LINK, given(valid_s=valid), port=port)

    def usage(self) -> types.SessionUsage:
        """Returns the memory in bytes, the processor time in milliseconds and the processes of the sandbox."""
        return self._call(api.GET_SESSION_USAGE)
