"""Frames over the Unix stream socket that connects the kernel with its host (`docs/protocol.md`)."""

from __future__ import annotations

import json.encoder
import json.scanner
import os
import select
import sys
from _socket import CMSG_SPACE, MSG_CMSG_CLOEXEC, SCM_RIGHTS, SOL_SOCKET
from _socket import socket as Socket
from fcntl import ioctl
from json import JSONDecoder
from termios import FIONREAD
from threading import Lock
from typing import Any, Union

from cellblock_kernel.cell.interrupt import Gate

Buffer = Union[bytes, bytearray, memoryview]
Header = dict[str, Any]

MAX_HEADER = 4 * 1024 * 1024
MAX_FRAME = 1024 * 1024 * 1024

_CHUNK = 64 * 1024
# Vectors per call; Linux allows 1024.
_VECTORS = 512

_getpid, _set_inheritable, _ioctl = os.getpid, os.set_inheritable, ioctl
# At most one descriptor comes with a message.
_ANCILLARY = CMSG_SPACE(4)
_AF_UNIX, _SOCK_STREAM = 1, 1


def _unsupported(value: object) -> str:
    return f"<{type(value).__name__}>"


# The C encoder and scanner are bound here: `json.dumps` itself is Python code that a cell may have patched.
_encode_chunks = json.encoder.c_make_encoder(  # type: ignore[attr-defined]
    None, _unsupported, json.encoder.c_encode_basestring or json.encoder.py_encode_basestring,  # type: ignore[attr-defined]
    None, ":", ",", False, False, False,
)  # fmt: skip
_make_scanner: Any = json.scanner.make_scanner
_scan = _make_scanner(JSONDecoder())


def encode(value: object) -> bytes:
    """Encodes JSON; lone surrogates, which no JSON reader accepts, are written out as `\\ud800`."""
    text = "".join(_encode_chunks(value, 0))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return "".join(map(_escape, text)).encode()


def frame(header: Header) -> bytes:
    """Encodes a frame without blobs."""
    head = encode(header)
    return (4 + len(head)).to_bytes(4, "big") + len(head).to_bytes(4, "big") + head


def decode(data: Buffer) -> Any:
    """Decodes JSON that carries no leading white space."""
    value, _ = _scan(str(data, "utf-8"), 0)
    return value


def _escape(character: str) -> str:
    return f"\\\\u{ord(character):04x}" if "\ud800" <= character <= "\udfff" else character


class Closed(Exception):
    """The host has closed the channel."""


class Oversize(ValueError):
    """A frame is too large to send; none of it was sent."""


class BrokenFrame(Exception):
    """The host has sent a frame that breaks the protocol."""


class Channel:
    """Sends and receives frames; safe to send from any thread of the process that opened it."""

    def __init__(self, fd: int, gate: Gate) -> None:
        self.shield = gate.shield
        self.unshield = gate.unshield
        self._gate = gate
        gate.unread = self._unread
        self.lock = Lock()
        self._buffer = bytearray(_CHUNK)
        self._view = memoryview(self._buffer)
        self.move(fd)

    def move(self, fd: int) -> None:
        """Continues over another socket, owned by the calling process; discards bytes received over the
        previous one."""
        _set_inheritable(fd, False)
        self._socket = Socket(_AF_UNIX, _SOCK_STREAM, 0, fd)
        self._socket.setblocking(True)
        self._pid = _getpid()
        self._start = 0
        self._end = 0
        self._handed: list[int] = []
        self._held: list[memoryview] = []
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)

    def fileno(self) -> int:
        """Its descriptor."""
        return self._socket.fileno()

    def release(self) -> None:
        """Closes this process's copy of the socket."""
        self._socket.close()

    def end(self, how: int) -> None:
        """Ends one direction of the stream, for all processes that hold it."""
        self._socket.shutdown(how)

    @property
    def mine(self) -> bool:
        """Returns whether this process may write: a child that a cell forked may not."""
        return _getpid() == self._pid

    def send(self, header: Header, blobs: list[Buffer] | None = None) -> None:
        """Sends one frame; does nothing in a forked child. The caller holds no lock."""
        if not self.mine:
            return
        self.shield()
        try:
            with self.lock:
                self.send_locked(header, blobs)
        finally:
            self.unshield()

    def send_locked(self, header: Header, blobs: list[Buffer] | None = None, hold: bool = False) -> None:
        """Sends one frame for a caller that holds the lock and the shield.

        With `hold`, a frame without blobs leaves together with the next one, so that the host wakes up once for both.
        The caller makes sure that there is a next one.
        """
        views: list[memoryview] = []
        if blobs:
            views = [memoryview(blob).cast("B") for blob in blobs]
            header["blobs"] = [len(view) for view in views]
        head = encode(header)
        if len(head) > MAX_HEADER:
            raise Oversize(f"a header of {len(head)} bytes is over the limit of {MAX_HEADER} bytes")
        total = 4 + len(head) + sum(map(len, views))
        if total > MAX_FRAME:
            raise Oversize(f"a frame of {total} bytes is over the limit of {MAX_FRAME} bytes")
        start = total.to_bytes(4, "big") + len(head).to_bytes(4, "big") + head
        self._held.append(memoryview(start))
        if hold and not views:
            return
        held, self._held = self._held, []
        self._send_all([*held, *(view for view in views if len(view))])

    def release_held(self) -> None:
        """Sends the frames that were held back; does nothing in a forked child. The caller holds no lock."""
        if not self._held or not self.mine:
            return
        self.shield()
        try:
            with self.lock:
                held, self._held = self._held, []
                self._send_all(held)
        finally:
            self.unshield()

    def _send_all(self, views: list[memoryview]) -> None:
        while views:
            sent = self._socket.sendmsg(views[:_VECTORS])
            while views and sent >= len(views[0]):
                sent -= len(views[0])
                del views[0]
            if views and sent:
                views[0] = views[0][sent:]

    def wait(self) -> None:
        """Waits until something can be read; unlike `receive` this may be interrupted without losing bytes."""
        if self._start == self._end:
            self._poll.poll()

    def ready(self, milliseconds: int) -> bool:
        """Returns whether something can be read within a time."""
        return self.buffered or bool(self._poll.poll(milliseconds))

    def _unread(self) -> int:
        """Returns the number of received bytes that were not read. Changes nothing, as it may be called at any
        point."""
        try:
            return self._end - self._start + int.from_bytes(_ioctl(self._socket.fileno(), FIONREAD, b"\0\0\0\0"), sys.byteorder)
        except OSError:
            return 0

    @property
    def main(self) -> int:
        """Identity of the thread that interrupts reach."""
        return self._gate.main

    @property
    def buffered(self) -> bool:
        """Returns whether bytes of a next frame have been received."""
        return self._start < self._end

    def receive(self) -> tuple[Header, list[bytes]]:
        """Receives the frame that the kernel handles next."""
        self._gate.busy = False
        self.wait()
        # Before the first byte is read, not after: an interrupt must see one state or the other.
        self.occupy()
        return self.read()

    def occupy(self) -> None:
        """Notes that a request has been received: an interrupt from now on is meant for it."""
        self._gate.busy = True

    def read(self) -> tuple[Header, list[bytes]]:
        """Receives one frame."""
        sizes = self._take(8)
        total = int.from_bytes(sizes[:4], "big")
        size = int.from_bytes(sizes[4:], "big")
        if total > MAX_FRAME or size > MAX_HEADER or size + 4 > total:
            raise BrokenFrame(f"a frame of {total} bytes with a header of {size} bytes")
        header = decode(self._take(size))
        lengths = header.get("blobs", [])
        if sum(lengths) != total - 4 - size:
            raise BrokenFrame(f"blobs of {sum(lengths)} bytes in a frame that has {total - 4 - size}")
        return header, [bytes(self._take(length)) for length in lengths]

    def _take(self, size: int) -> Buffer:
        have = self._end - self._start
        if have >= size:
            start = self._start
            self._start = start + size
            return self._view[start : start + size]
        if size > _CHUNK:
            whole = bytearray(size)
            view = memoryview(whole)
            view[:have] = self._view[self._start : self._end]
            self._start = self._end = 0
            while have < size:
                have += self._read(view[have:])
            return whole
        if _CHUNK - self._start < size:
            self._view[:have] = bytes(self._view[self._start : self._end])
            self._start, self._end = 0, have
        elif not have:
            self._start = self._end = 0
        while self._end - self._start < size:
            self._end += self._read(self._view[self._end :])
        start = self._start
        self._start = start + size
        return self._view[start : start + size]

    def handed(self) -> list[int]:
        """Returns the descriptors that have arrived with messages; the caller closes them."""
        handed, self._handed = self._handed, []
        return handed

    def _read(self, view: memoryview) -> int:
        size, ancillary, _, _ = self._socket.recvmsg_into([view], _ANCILLARY, MSG_CMSG_CLOEXEC)
        if not size:
            raise Closed
        for level, kind, content in ancillary:
            if (level, kind) == (SOL_SOCKET, SCM_RIGHTS):
                self._handed += memoryview(content[: len(content) // 4 * 4]).cast("i")
        return size
