"""Starts kernels as processes of their own and talks to them as the host does."""

import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tests.needs import needs as needs

PACKAGE = Path(__file__).resolve().parent.parent
# A kernel that has imported libraries as a template's child has.
_WARM = """
import sys
from cellblock_kernel.boot import after_fork, main, warm
modules, (_, channel, _, spare) = sys.argv[1:-4], sys.argv[-4:]
assert not warm.warm(modules)
after_fork.refresh()
main.serve(int(channel), int(spare))
"""
# The tests run beside others at the lowest priority, so a kernel may be slow without a fault.
_TIMEOUT = 120
_FONTS = tempfile.TemporaryDirectory(prefix="cellblock-fonts-")


@cache
def _fonts():
    """Returns the folder of Matplotlib's list of fonts. A kernel would make its own, and say so if it takes long."""
    if find_spec("matplotlib"):
        listing = [sys.executable, "-B", "-c", "import matplotlib.font_manager"]
        subprocess.run(listing, env={**os.environ, "MPLCONFIGDIR": _FONTS.name}, capture_output=True, check=True)
    return _FONTS.name


@dataclass
class Execution:
    """What came back for one message."""

    outputs: list
    blobs: list
    done: dict
    stdout: str
    stderr: str
    # The headers of outputs, and of clears between them.
    frames: list = field(default_factory=list)

    @property
    def values(self):
        return [output.get("value") for output in self.outputs]

    @property
    def exception(self):
        """The exception output, which must be the last one."""
        assert self.outputs[-1]["type"] == "exception", self.outputs
        return self.outputs[-1]


class Kernel:
    """A kernel process."""

    def __init__(self, directory, preload=None, **configuration):
        self._socket, theirs = socket.socketpair()
        self._spare, spare = socket.socketpair()
        start = ["-m", "cellblock_kernel"] if preload is None else ["-c", _WARM, *preload]
        environment = {"PATH": "/usr/bin:/bin", "HOME": directory, "PYTHONPATH": str(PACKAGE), "LANG": "C.UTF-8"}
        environment["MPLCONFIGDIR"] = _fonts()
        self.process = subprocess.Popen(
            [sys.executable, *start, "--channel", str(theirs.fileno()), "--spare", str(spare.fileno())],
            pass_fds=[theirs.fileno(), spare.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=directory,
            env=environment,
        )
        theirs.close()
        spare.close()
        self.standby = None
        self._selector = selectors.DefaultSelector()
        self._text = {}
        for pipe in (self.process.stdout, self.process.stderr):
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ)
            self._text[pipe] = b""
        self._selector.register(self._socket, selectors.EVENT_READ)
        self._bytes = b""
        self._cell = 0
        self.calls = {}
        self.hello, _ = self._frame()
        if configuration:
            self.send({"type": "configure", **configuration})

    def send(self, header, *blobs):
        if blobs:
            header = {**header, "blobs": [len(blob) for blob in blobs]}
        head = json.dumps(header).encode()
        body = head + b"".join(blobs)
        self._socket.sendall(struct.pack(">II", 4 + len(body), len(head)) + body)

    def start(self, kind, *blobs, **fields):
        """Sends a message that is answered by `done`, and returns before it is."""
        self._cell += 1
        self.send({"type": kind, "cell": self._cell, **fields}, *blobs)

    def begin(self, code, **fields):
        self.start("execute", **{"code": code, "name": "cell.py", "mode": "exec", "echo": True, "store": True, **fields})

    def run(self, code, **fields):
        self.begin(code, **fields)
        return self.finish()

    def ask(self, kind, *blobs, **fields):
        self.start(kind, *blobs, **fields)
        return self.finish()

    def finish(self):
        """Reads up to the `done` of the message before."""
        outputs, attached, frames = [], [], []
        while True:
            header, blobs = self._frame()
            if header["type"] == "call" and header["method"] == "clear":
                frames.append({"type": "clear", **header["params"]})
                self.send({"type": "answer", "call": header["call"]})
                continue
            if header["type"] == "call":
                answer, *more = self.calls[header["method"]](header["params"], blobs)
                self.send({"type": "answer", "call": header["call"], **answer}, *more)
                continue
            if header["type"] == "standby":
                self.standby = header
                continue
            assert header["cell"] == self._cell, header
            if header["type"] == "done":
                break
            frames.append(header)
            assert header["index"] == len(outputs), header
            outputs.append(header["output"])
            attached.append(blobs)
        self._drain()
        texts = [self._text[pipe].decode() for pipe in (self.process.stdout, self.process.stderr)]
        self._text = dict.fromkeys(self._text, b"")
        return Execution(outputs, attached, header, *texts, frames)

    def hear_of_standby(self):
        """What the kernel says of its standby after the message before."""
        header, _ = self._frame()
        assert header["type"] == "standby", header
        self.standby = header
        return header

    def crash(self, code):
        """Runs a cell that must end the kernel."""
        self.begin(code)
        try:
            done = self.finish().done
        except EOFError:
            return
        raise AssertionError(f"the kernel lives: {done}")

    def rescue(self):
        """Lets the standby take over, and returns what it says of the next one."""
        self.take_over()
        return self.hear_of_standby()

    def take_over(self):
        """Lets the standby take over, and waits only until it has."""
        ours, theirs = socket.socketpair()
        self._selector.unregister(self._socket)
        self._socket.close()
        head = b'{"type":"take_over"}'
        frame = struct.pack(">II", 4 + len(head), len(head)) + head
        socket.send_fds(self._spare, [frame], [theirs.fileno()])
        theirs.close()
        self._socket, self._spare = self._spare, ours
        self._selector.register(self._socket, selectors.EVENT_READ)
        self._bytes = b""
        self.hello, _ = self._frame()

    def wait_for(self, text, stream="stdout"):
        """Reads until stdout or stderr holds a text."""
        while text.encode() not in self._text[getattr(self.process, stream)]:
            self._read_some()

    def interrupt(self):
        os.kill(self.hello["pid"], signal.SIGINT)

    def close(self):
        started = _children(self.hello["pid"])
        self._socket.close()
        self._spare.close()
        try:
            self.process.wait(_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            # No room ends with the kernel here, and an interpreter in a loop would not hear that its pipes are closed.
            for group in started:
                with suppress(ProcessLookupError):
                    os.killpg(group, signal.SIGKILL)
            self.process.stdout.close()
            self.process.stderr.close()
            self._selector.close()

    def _drain(self):
        for pipe in self._text:
            while True:
                try:
                    data = os.read(pipe.fileno(), 65536)
                except BlockingIOError:
                    break
                if not data:
                    break
                self._text[pipe] += data

    def _read_some(self):
        ready = self._selector.select(_TIMEOUT)
        if not ready:
            raise TimeoutError("the kernel says nothing")
        for key, _ in ready:
            if key.fileobj is self._socket:
                data = self._socket.recv(1 << 20)
                if not data:
                    self._drain()
                    raise EOFError(f"the kernel has gone; stderr: {self._text[self.process.stderr].decode()}")
                self._bytes += data
            else:
                data = os.read(key.fd, 65536)
                if not data:
                    self._selector.unregister(key.fileobj)
                self._text[key.fileobj] += data

    def _take(self, size):
        while len(self._bytes) < size:
            self._read_some()
        taken, self._bytes = self._bytes[:size], self._bytes[size:]
        return taken

    def _frame(self):
        total, size = struct.unpack(">II", self._take(8))
        header = json.loads(self._take(size))
        lengths = header.get("blobs", [])
        assert sum(lengths) == total - 4 - size
        return header, [self._take(length) for length in lengths]


def _children(pid):
    """Ids of the processes that a process has started and that live; none once it has ended."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


class KernelTest(unittest.TestCase):
    """A test with a kernel in an empty directory."""

    configuration = {}

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.start_kernel()

    def start_kernel(self):
        """Starts a kernel, beside one that may be there already."""
        self.kernel = Kernel(str(self.directory), **self.configuration)
        self.addCleanup(self.kernel.close)

    def run_cell(self, code, **fields):
        return self.kernel.run(code, **fields)

    def completes(self, code, **fields):
        """Runs a cell that must complete."""
        ran = self.kernel.run(code, **fields)
        self.assertEqual(ran.done["outcome"], "completed", ran.outputs[-1:] or ran.done)
        return ran

    def raises(self, code, **fields):
        """Runs a cell that must raise, and returns its exception output."""
        ran = self.kernel.run(code, **fields)
        self.assertEqual(ran.done["outcome"], "raised", ran)
        self.assertEqual(ran.done["error"]["type"], ran.exception["exception"])
        return ran.exception
